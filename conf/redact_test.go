package conf

import (
	"fmt"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

func TestRedact(t *testing.T) {
	for in, want := range map[string]string{
		"":                                    "",
		"127.0.0.1:6379":                      "127.0.0.1:6379",
		".stockade/stockade.db":               ".stockade/stockade.db",
		"root@tcp(127.0.0.1:3306)/stockade":   "root@tcp(127.0.0.1:3306)/stockade",
		"u:p@tcp(127.0.0.1:3306)/stockade":    "u:***@tcp(127.0.0.1:3306)/stockade",
		"u:p@/:w@tcp(h)/db?a=b":               "u:***@tcp(h)/db?a=b",
		"amqp://u:p@h:5672/v":                 "amqp://u:***@h:5672/v",
		"redis://:p/q@h:6379/0":               "redis://:***@h:6379/0",
		"https://token@h/":                    "https://***@h/",
		"https://h/?a=1&api_token=s&b=2":      "https://h/?a=1&api_token=***&b=2",
		"u:p@tcp(h)/db?serverPassword=x&y=1":  "u:***@tcp(h)/db?serverPassword=***&y=1",
		"postgres://h?password=s with spaces": "postgres://h?password=*** with spaces",
	} {
		if got := Redact(in); got != want {
			t.Errorf("Redact(%q) = %q, want %q", in, got, want)
		}
	}
}

// Whatever a password is made of, neither the values shown nor the complaints of a Validate that repeats its input
// contain it.
func TestNoSecretLeavesTheLoader(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		secret := rapid.StringMatching(`s3nt[A-Za-z0-9:/@%"'\\ é?=&-]{0,12}inel`).Draw(t, "secret")
		shape := rapid.SampledFrom([]string{
			"u:%s@tcp(h)/db", "amqp://u:%s@h/", "redis://:%s@h", "https://%s@h/", "bad:%s@h",
		}).Draw(t, "shape")
		if strings.HasPrefix(shape, "https") { // what stands in front of a colon is a user's name
			secret = strings.ReplaceAll(secret, ":", "")
		}
		dsn := fmt.Sprintf(shape, secret)
		target := newSample()
		l := newLoader(target)
		err := l.load(Sources{Env: []string{
			"STOCKADE_STORE_DSN=" + dsn, "STOCKADE_STORE_API_TOKEN=" + rapid.SampledFrom([]string{"", "bad"}).Draw(t, "bad") + secret,
			"STOCKADE_STORE_ADDRESSES=h:1," + strings.ReplaceAll(dsn, ",", ""),
			"STOCKADE_LANE_QUEUE=" + secret, "STOCKADE_LANE_ON=" + secret,
		}, Set: []string{"store.idleMs=" + secret}})
		if err == nil {
			t.Fatal("text was taken for a number")
		}
		out := err.Error()
		for _, leaf := range l.root.leaves() {
			out += fmt.Sprintf("\n%s=%v", leaf.path, leaf.shown())
		}
		for _, part := range []string{secret, "s3nt", "inel"} {
			if strings.Contains(out, part) {
				t.Fatalf("%q shows in\n%s", part, out)
			}
		}
	})
}
