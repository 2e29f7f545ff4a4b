package conf_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"stockade/conf"
)

const sentinel = "S3ntinelOfSecrets"

// Every key that takes text is given an address with a password, from each source in turn; wherever the configuration
// is printed, and whatever is said against it, the password is not there.
func TestNoSecretIsEverPrinted(t *testing.T) {
	tried := 0
	for _, e := range conf.Entries() {
		if e.Type != "text" && e.Type != "a list of texts" {
			continue
		}
		for _, address := range []string{
			"user:" + sentinel + "@tcp(127.0.0.1:3306)/stockade?parseTime=true", "amqp://user:%zz" + sentinel + "@127.0.0.1/",
		} {
			tried++
			file := filepath.Join(t.TempDir(), "c.yaml")
			text := fmt.Sprintf("%s: {%s: %q}\n", section(e.Key), last(e.Key), address)
			if e.Type != "text" {
				text = fmt.Sprintf("%s: {%s: [%q]}\n", section(e.Key), last(e.Key), address)
			}
			if section(e.Key) == "" {
				text = fmt.Sprintf("%s: %q\n", e.Key, address)
			}
			if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
				t.Fatal(err)
			}
			for _, src := range []conf.Sources{
				{File: file}, {Env: []string{e.Env + "=" + address}}, {Set: []string{e.Key + "=" + address}},
			} {
				out := everything(t, src)
				if strings.Contains(out, sentinel) {
					t.Errorf("%s set to %s shows its password in:\n%s", e.Key, address, out)
				}
			}
		}
	}
	if tried == 0 {
		t.Fatal("no key takes text")
	}
}

// everything prints a configuration, or what is wrong with it, in every way there is.
func everything(t *testing.T, src conf.Sources) string {
	t.Helper()
	var b bytes.Buffer
	log := slog.New(slog.NewTextHandler(&b, nil))
	loaded, err := conf.Load(src)
	if err != nil {
		fmt.Fprintf(&b, "%v %+v %#v %s", err, err, err, err)
		log.Error("refused", "error", err)
		text, _ := json.Marshal(err)
		return b.String() + string(text)
	}
	for _, v := range []any{loaded, &loaded, loaded.Config, &loaded.Config, loaded.Values()} {
		fmt.Fprintf(&b, "%v %+v %#v %s %q %d", v, v, v, v, v, v)
		log.Info("loaded", "config", v)
		slog.New(slog.NewJSONHandler(&b, nil)).Info("loaded", "config", v)
		text, err := json.Marshal(v)
		if err != nil {
			t.Fatal(err)
		}
		b.Write(text)
	}
	return b.String() + loaded.String()
}

// A number out of its bounds is refused from every source, by its key and by where it was written.
func TestEveryNumberHasBounds(t *testing.T) {
	for _, e := range conf.Entries() {
		if e.Type != "a whole number" {
			continue
		}
		const impossible = "-4611686018427387904"
		file := filepath.Join(t.TempDir(), "c.yaml")
		first, head := "# a comment", section(e.Key)+":"
		if head == ":" {
			head = "# a key of no section"
		} else if outer, inner, nested := strings.Cut(head, "."); nested {
			first, head = outer+":", "  "+inner
		}
		indent := strings.Repeat(" ", 2*strings.Count(e.Key, "."))
		if err := os.WriteFile(file, []byte(first+"\n"+head+"\n"+indent+last(e.Key)+": "+impossible+"\n"), 0o600); err != nil {
			t.Fatal(err)
		}
		for where, src := range map[string]conf.Sources{
			file + ":3": {File: file}, e.Env: {Env: []string{e.Env + "=" + impossible}}, "--set": {Set: []string{e.Key + "=" + impossible}},
		} {
			_, err := conf.Load(src)
			if want := where + ": " + e.Key + ": "; err == nil || !strings.HasPrefix(err.Error(), want) {
				t.Errorf("got %v, want an error that starts with %q", err, want)
			}
		}
	}
}

func TestOriginsAreTold(t *testing.T) {
	file := filepath.Join(t.TempDir(), "c.yaml")
	if err := os.WriteFile(file, []byte("log:\n  level: warn\n  format: json\nnodeName: a\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	loaded, err := conf.Load(conf.Sources{
		File: file, Env: []string{"STOCKADE_LOG_FORMAT=text", "STOCKADE_NODE_NAME=b"}, Set: []string{"nodeName=c"},
	})
	if err != nil {
		t.Fatal(err)
	}
	want := map[string]string{
		"nodeName": "c from --set", "log.level": "warn from " + file + ":2", "log.format": "text from STOCKADE_LOG_FORMAT",
		"service.writers": "2 from default",
	}
	for _, v := range loaded.Values() {
		if w, ok := want[v.Key]; ok {
			if got := fmt.Sprintf("%v from %s", v.Value, v.Origin); got != w {
				t.Errorf("%s is %s, want %s", v.Key, got, w)
			}
			delete(want, v.Key)
		}
	}
	if len(want) > 0 {
		t.Errorf("Values leaves out %v", want)
	}
	if node, err := loaded.Config.Node(); node != "c" || err != nil {
		t.Errorf("Node is %q, %v", node, err)
	}
	if host, err := conf.Default().Node(); host == "" || err != nil {
		t.Errorf("without a name Node is %q, %v; want the host's", host, err)
	}
}

// Keys of two sections that do not fit together are one problem, at the key that was set.
func TestSectionsMustFitTogether(t *testing.T) {
	_, err := conf.Load(conf.Sources{Env: []string{"STOCKADE_CACHE_FLAG_LIFETIME_MS=900"}})
	const want = "STOCKADE_CACHE_FLAG_LIFETIME_MS: cache.flagLifetimeMs: service.peekEveryMs: 1000 must be below cache.flagLifetimeMs (900)"
	if err == nil || !strings.HasPrefix(err.Error(), want) {
		t.Errorf("got %v, want %s…", err, want)
	}
}

func TestScrubMasksWhatOthersRepeat(t *testing.T) {
	loaded, err := conf.Load(conf.Sources{Env: []string{
		"STOCKADE_STORE_DSN=u:p%40ss" + sentinel + "@tcp(h)/db", "STOCKADE_SHARD_PASSWORD=" + sentinel,
	}})
	if err != nil {
		t.Fatal(err)
	}
	for in, want := range map[string]string{
		"dial u:p%40ss" + sentinel + "@tcp(h)/db": "dial u:***@tcp(h)/db",
		"dial u:p@ss" + sentinel + "@tcp(h)/db":   "dial u:***@tcp(h)/db",
		"AUTH " + sentinel + " failed":            "AUTH *** failed",
		"nothing to hide":                         "nothing to hide",
	} {
		if got := loaded.Config.Scrub(in); got != want {
			t.Errorf("Scrub(%q) = %q, want %q", in, got, want)
		}
	}
	if got := (conf.Config{}).Scrub("a"); got != "a" {
		t.Errorf("an empty configuration turns a into %q", got)
	}
}

func TestTheDefaultIsValid(t *testing.T) {
	if _, err := conf.Load(conf.Sources{}); err != nil {
		t.Error(err)
	}
}

func section(key string) string {
	i := strings.LastIndexByte(key, '.')
	return key[:max(i, 0)]
}

func last(key string) string { return key[strings.LastIndexByte(key, '.')+1:] }

// Whoever reaches the admin API from elsewhere has to show a token.
func TestTheAdminListenerStaysOnThisMachineWithoutTokens(t *testing.T) {
	elsewhere := "router.admin=0.0.0.0:8081"
	if _, err := conf.Load(conf.Sources{Set: []string{elsewhere}}); err == nil || !strings.Contains(err.Error(), "router.admin: ") ||
		!strings.Contains(err.Error(), "auth.adminTokensFile") {
		t.Errorf("without tokens: %v", err)
	}
	if _, err := conf.Load(conf.Sources{Set: []string{elsewhere, "auth.adminTokensFile=tokens.yaml"}}); err != nil {
		t.Errorf("with tokens: %v", err)
	}
}
