package conf_test

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"stockade/conf"
)

// FuzzConfiguration loads anything as the file of a node: it is refused with a reason, or every section of what comes of it
// is in range, and it is printed as JSON.
func FuzzConfiguration(f *testing.F) {
	for _, seed := range []string{
		"", "nodeName: n1\n", "log: {level: debug}\n", "auth: {buyers: [jwt], jwtSecrets: [\"" + strings.Repeat("s", 32) + "\"], audience: shop}\n",
		"auth: {buyers: []}\n", "auth: {gateways: [0.0.0.0/0], signers: [\"a:b\"]}\n", "limiter: {buyerPerSecond: 0, maxBuyers: -1}\n",
		"limiter: {lanes: {slowMs: 1}}\n", "router: {public: \":0\", maxStreams: 1e9}\n", "shard: {laneQueue: 0x10}\n", "store: null\n",
		"doctor: {prometheusURL: \"http://a:b@c\"}\n", "toggles: {file: \"\\0\"}\n", "a: &a [*a]\n", "router: {router: {}}\n", "? [x]\n: y\n",
		"stopTimeoutMs: 99999999999999999999\n", "--- \n--- \n",
	} {
		f.Add([]byte(seed))
	}
	file := filepath.Join(f.TempDir(), "c.yaml")
	f.Fuzz(func(t *testing.T, text []byte) {
		if err := os.WriteFile(file, text, 0o600); err != nil {
			t.Fatal(err)
		}
		loaded, err := conf.Load(conf.Sources{File: file})
		if err != nil {
			if err.Error() == "" {
				t.Fatalf("%q is refused without a reason", text)
			}
			return
		}
		c := loaded.Config
		for section, err := range map[string]error{
			"": c.Validate(), "router": c.Router.Validate(), "auth": c.Auth.Validate(), "store": c.Store.Validate(), "shard": c.Shard.Validate(),
			"mq": c.MQ.Validate(), "cache": c.Cache.Validate(), "limiter": c.Limiter.Validate(), "service": c.Service.Validate(),
		} {
			if err != nil {
				t.Fatalf("%q is taken, but %s: %v", text, section, err)
			}
		}
		if printed, err := json.Marshal(loaded); err != nil || len(printed) == 0 {
			t.Fatalf("%q prints as %q, %v", text, printed, err)
		}
	})
}
