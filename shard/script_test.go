package shard

import (
	"strings"
	"testing"
)

// TestScriptsSayWhatTheyTake holds every script file to its header.
func TestScriptsSayWhatTheyTake(t *testing.T) {
	files, err := sources.ReadDir("lua")
	if err != nil {
		t.Fatal(err)
	}
	if len(files) != len(allScripts)+1 { // the common part is no script
		t.Errorf("%d files for %d scripts", len(files), len(allScripts))
	}
	for _, f := range files {
		text, err := sources.ReadFile("lua/" + f.Name())
		if err != nil {
			t.Fatal(err)
		}
		var header []string
		for line := range strings.Lines(string(text)) {
			if !strings.HasPrefix(line, "--") {
				break
			}
			header = append(header, strings.TrimSpace(strings.TrimPrefix(line, "--")))
		}
		name := strings.TrimSuffix(f.Name(), ".lua")
		if name == "common" {
			continue
		}
		if !strings.HasPrefix(header[0], name+":") {
			t.Errorf("%s begins with %q", f.Name(), header[0])
		}
		for _, word := range []string{"KEYS ", "ARGV", "RETURNS ", "CALLER "} {
			if !strings.Contains(strings.Join(header, "\n"), "\n"+word) {
				t.Errorf("%s does not name its %s", f.Name(), word)
			}
		}
	}
}

func TestIdentityOfInfo(t *testing.T) {
	whole := "# Server\r\nredis_version:7.0.15\r\nrun_id:abc\r\n# Replication\r\nmaster_replid:def\r\n"
	if got := identityOf(whole); got != "abc def" {
		t.Errorf("identity %q", got)
	}
	if got := identityOf("# Clients\r\nconnected_clients:1\r\n"); got != "" {
		t.Errorf("a server that does not tell is %q", got)
	}
}
