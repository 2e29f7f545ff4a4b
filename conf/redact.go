package conf

import (
	"net/url"
	"reflect"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// mask stands where a secret was.
const mask = "***"

// secretParam finds credentials among the parameters of an address.
var secretParam = regexp.MustCompile(`(?i)\b(\w*(?:password|passwd|secret|token)\w*=)([^&\s]+)`)

// secretName tells keys whose whole value is a secret by how their name ends.
func secretName(key string) bool {
	name := strings.TrimSuffix(strings.ToLower(key), "s")
	for _, end := range []string{"password", "passwd", "secret", "token", "credential", "privatekey", "signingkey"} {
		if strings.HasSuffix(name, end) {
			return true
		}
	}
	return false
}

// Redact masks the credentials in an address: a URL, a host with user and password, or a database DSN. Text without
// any comes back as it is.
func Redact(s string) string {
	from, to := credentials(s)
	if from < to {
		s = s[:from] + mask + s[to:]
	}
	return secretParam.ReplaceAllString(s, "${1}"+mask)
}

// credentials finds the password in front of the last @: from the first colon behind the scheme, because a password
// may hold colons, slashes and @ unescaped. A URL's user without a password counts as a secret too: that is how
// tokens are passed.
func credentials(s string) (from, to int) {
	start, isURL := 0, false
	if i := strings.Index(s, "://"); i >= 0 {
		start, isURL = i+len("://"), true
	}
	to = strings.LastIndexByte(s, '@')
	if to < start {
		return 0, 0
	}
	if colon := strings.IndexByte(s[start:to], ':'); colon >= 0 {
		return start + colon + 1, to
	}
	if isURL {
		return start, to
	}
	return 0, 0
}

// shown is the value of a key as it may be printed: a string, bool, number or list, without secrets.
func (s *setting) shown() any {
	switch v := s.value; {
	case v.Kind() == reflect.String:
		return s.redact(v.String())
	case v.Kind() == reflect.Slice:
		items := make([]string, v.Len())
		for i := range items {
			items[i] = s.redact(v.Index(i).String())
		}
		return items
	case s.secret:
		return mask
	default:
		return v.Interface()
	}
}

func (s *setting) redact(text string) string {
	from, to := credentials(text)
	switch {
	case text == "":
		return ""
	case s.secret && (secretName(s.key) || from >= to):
		return mask
	}
	return Redact(text) // a secret address: only its credentials are secret
}

// secrets lists what must not be shown of the values below s, in the spellings that a message may use.
func (s *setting) secrets() []string {
	var all []string
	for _, leaf := range s.leaves() {
		for _, text := range leaf.texts() {
			if leaf.redact(text) == mask {
				all = append(all, spellings(text)...)
			}
			if from, to := credentials(text); from < to {
				all = append(all, spellings(text[from:to])...)
			}
			for _, m := range secretParam.FindAllStringSubmatch(text, -1) {
				all = append(all, spellings(m[2])...)
			}
		}
	}
	// Longest first: a secret that is part of another one must not leave the rest of it standing.
	slices.SortFunc(all, func(a, b string) int { return len(b) - len(a) })
	return all
}

// spellings are a secret as it is, as %q prints it, and with its percent escapes resolved.
func spellings(secret string) []string {
	if secret == "" {
		return nil
	}
	quoted := strconv.Quote(secret)
	all := []string{secret, quoted[1 : len(quoted)-1]}
	if decoded, err := url.PathUnescape(secret); err == nil {
		all = append(all, decoded)
	}
	return all
}

// scrub removes secrets from a message that somebody else wrote.
func scrub(message string, secrets []string) string {
	for _, secret := range secrets {
		message = strings.ReplaceAll(message, secret, mask)
	}
	return message
}

// texts lists the strings that a key holds.
func (s *setting) texts() []string {
	switch s.value.Kind() {
	case reflect.String:
		return []string{s.value.String()}
	case reflect.Slice:
		all := make([]string, s.value.Len())
		for i := range all {
			all[i] = s.value.Index(i).String()
		}
		return all
	}
	return nil
}
