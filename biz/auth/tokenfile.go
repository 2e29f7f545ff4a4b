package auth

import (
	"bytes"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"time"

	"gopkg.in/yaml.v3"

	"stockade/biz/sale"
)

// Bounds of admin tokens.
const (
	TokenPrefix = "stk_"

	tokenBytes    = 32      // random ones behind an admin token
	maxTokenFile  = 1 << 20 // bytes
	maxTokenCount = 1000
)

// buyerActor is how an order's history names its buyer.
const buyerActor = "buyer"

// TokenNamePattern is what a token's name looks like.
const TokenNamePattern = `[A-Za-z0-9][A-Za-z0-9._@-]{0,63}`

var (
	tokenName   = regexp.MustCompile(`^` + TokenNamePattern + `$`)
	tokenDigest = regexp.MustCompile(`^[0-9a-f]{64}$`)
)

// AdminToken is one entry of the file of admin tokens: everything but the token itself.
type AdminToken struct {
	Name    string    `yaml:"name" json:"name"`
	Role    Role      `yaml:"role" json:"role"`
	SHA256  string    `yaml:"sha256" json:"-"` // of the whole token, in hex
	Created time.Time `yaml:"created,omitempty" json:"created,omitzero"`
	Expires time.Time `yaml:"expires,omitempty" json:"expires,omitzero"` // zero: never
}

// NewAdminToken makes a token, which is to be shown once, and its entry. An error names what is wrong with the entry.
func NewAdminToken(name string, role Role, created, expires time.Time) (token string, entry AdminToken, err error) {
	var random [tokenBytes]byte
	_, _ = rand.Read(random[:]) // never fails
	token = TokenPrefix + base64.RawURLEncoding.EncodeToString(random[:])
	entry = AdminToken{Name: name, Role: role, SHA256: digest(token), Created: created, Expires: expires}
	return token, entry, entry.check()
}

// Matches tells whether an entry is of this token.
func (t AdminToken) Matches(token string) bool { return t.SHA256 == digest(token) }

// digest is enough for 32 random bytes; passwords would need something slow.
func digest(token string) string {
	sum := sha256.Sum256([]byte(token))
	return hex.EncodeToString(sum[:])
}

func (t AdminToken) check() error {
	switch {
	case !tokenName.MatchString(t.Name):
		return fmt.Errorf("name %q: must match %s", t.Name, TokenNamePattern)
	case t.Name == sale.ServiceActor || t.Name == buyerActor:
		return fmt.Errorf("name %q: is reserved", t.Name)
	case !t.Role.Valid():
		return fmt.Errorf("token %s: role must be viewer, operator or admin", t.Name)
	case !tokenDigest.MatchString(t.SHA256):
		return fmt.Errorf("token %s: sha256 must be 64 hexadecimal digits in lower case", t.Name)
	}
	return nil
}

// ParseAdminTokens reads the text of a file of admin tokens: a YAML list, maybe empty, of entries with names of their own.
func ParseAdminTokens(text []byte) ([]AdminToken, error) {
	var all []AdminToken
	dec := yaml.NewDecoder(bytes.NewReader(text))
	dec.KnownFields(true)
	if err := dec.Decode(&all); err != nil && !errors.Is(err, io.EOF) {
		return nil, err
	}
	if err := dec.Decode(&yaml.Node{}); !errors.Is(err, io.EOF) {
		return nil, errors.New("must be one YAML document")
	}
	if len(all) > maxTokenCount {
		return nil, fmt.Errorf("has %d tokens, more than %d", len(all), maxTokenCount)
	}
	names, owners := map[string]bool{}, map[string]string{} // the latter by digest
	for _, t := range all {
		if err := t.check(); err != nil {
			return nil, err
		}
		if names[t.Name] {
			return nil, fmt.Errorf("token %s: is there twice", t.Name)
		}
		names[t.Name] = true
		if name := owners[t.SHA256]; name != "" {
			return nil, fmt.Errorf("tokens %s and %s: are the same token", name, t.Name)
		}
		owners[t.SHA256] = t.Name
	}
	return all, nil
}

// ReadAdminTokens reads a file of admin tokens. fs.ErrNotExist when there is none.
func ReadAdminTokens(path string) ([]AdminToken, error) {
	text, err := readBounded(path, maxTokenFile)
	if err != nil {
		return nil, err
	}
	return ParseAdminTokens(text)
}

const tokenFileHead = `# Admin tokens, as hashes: a token itself is shown once, by "stockade token create", and is kept nowhere.
# Nodes look at this file once a second.
`

// WriteAdminTokens replaces a file of admin tokens in one step, so that no node reads half of it.
func WriteAdminTokens(path string, all []AdminToken) error {
	text, err := FormatAdminTokens(all)
	if err != nil {
		return err
	}
	if _, err := ParseAdminTokens(text); err != nil {
		return err // nodes would ignore the file
	}
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return err
	}
	f, err := os.CreateTemp(filepath.Dir(path), filepath.Base(path)+".*")
	if err != nil {
		return err
	}
	// The service may run as another user than the operator. Hashes of 32 random bytes tell nothing, and a file that the
	// service cannot read would keep a revoked token alive.
	_, err = f.WriteString(tokenFileHead + string(text))
	err = errors.Join(err, f.Chmod(0o644), f.Sync(), f.Close())
	if err == nil {
		err = os.Rename(f.Name(), path)
	}
	if err != nil {
		_ = os.Remove(f.Name())
	}
	return err
}

// FormatAdminTokens is the YAML of entries.
func FormatAdminTokens(all []AdminToken) ([]byte, error) {
	if len(all) == 0 {
		return []byte("[]\n"), nil
	}
	return yaml.Marshal(all)
}

// Without returns the entries but the one of this name, and whether there was one.
func Without(all []AdminToken, name string) (rest []AdminToken, found bool) {
	rest = slices.DeleteFunc(slices.Clone(all), func(t AdminToken) bool { return t.Name == name })
	return rest, len(rest) < len(all)
}

// ValidToken tells whether a text can be an admin token at all.
func ValidToken(token string) bool {
	rest, ok := strings.CutPrefix(token, TokenPrefix)
	if !ok || len(rest) != base64.RawURLEncoding.EncodedLen(tokenBytes) {
		return false
	}
	_, err := base64.RawURLEncoding.DecodeString(rest)
	return err == nil
}
