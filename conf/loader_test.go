package conf

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"stockade/biz/sale"
)

type sample struct {
	Name  string `yaml:"name"`
	Store sampleStore
	Lane  sampleLane `yaml:"lane"`
}

type sampleStore struct {
	DSN       string
	APIToken  string
	Addresses []string
	IdleMs    int
	Now       func() int // no setting
}

// Validate repeats what it is given, as a package that knows no better may do.
func (s sampleStore) Validate() error {
	var errs []error
	if strings.Contains(s.DSN, "bad") {
		errs = append(errs, fmt.Errorf("store: DSN: cannot parse %q", s.DSN))
	}
	if strings.Contains(s.APIToken, "bad") {
		errs = append(errs, fmt.Errorf("no such token: %s", s.APIToken))
	}
	return errors.Join(errs...)
}

type sampleLane struct {
	Queue   int     `yaml:"queue"`
	Workers uint8   `yaml:"workers"`
	Ratio   float64 `yaml:"ratio"`
	On      bool    `yaml:"on"`
}

// Validate names its first problem only, in two styles.
func (l sampleLane) Validate() error {
	switch {
	case l.Queue < 1 || l.Queue > 100:
		return sale.BadInput("queue", "must be from 1 to 100")
	case l.Workers > 16:
		return fmt.Errorf("workers: %d is out of range: must be from 0 to 16", l.Workers)
	case int(l.Workers) > l.Queue:
		return fmt.Errorf("queue: must not be below workers (%d)", l.Workers)
	}
	return nil
}

func newSample() *sample {
	return &sample{
		Name:  "n",
		Store: sampleStore{DSN: "file.db", IdleMs: 1000},
		Lane:  sampleLane{Queue: 10, Workers: 2, Ratio: 0.5},
	}
}

func problemsOf(t *testing.T, file string, env, set []string) []string {
	t.Helper()
	l := newLoader(newSample())
	if file != "" {
		l.readYAML("f.yaml", []byte(file))
	}
	err := l.load(Sources{Env: env, NotOurs: []string{"STOCKADE_TEST_*", "STOCKADE_ADMIN_URL"}, Set: set})
	if err == nil {
		return nil
	}
	lines := []string{}
	for _, p := range err.(Problems) {
		lines = append(lines, p.String())
	}
	return lines
}

func TestEveryProblemIsNamedWithKeyAndLine(t *testing.T) {
	tests := []struct {
		name, file string
		env, set   []string
		want       []string
	}{
		{name: "nothing", want: nil},
		{name: "only comments", file: "# nothing\n", want: nil},
		{name: "empty section", file: "lane:\n  # queue: 1\n", want: nil},
		{name: "all kinds", file: "name: x\nstore: {dsn: a, addresses: [b, c], idleMs: 5}\nlane: {queue: 3, workers: 1, ratio: 1e-1, on: true}\n"},
		{
			name: "unknown key, near and far", file: "lane:\n  quue: 3\n  colour: red\n",
			want: []string{
				"f.yaml:2: lane.quue: unknown key; did you mean queue?",
				"f.yaml:3: lane.colour: unknown key; allowed here: queue, workers, ratio, on",
			},
		},
		{
			name: "unknown section", file: "stroe:\n  dsn: x\n",
			want: []string{"f.yaml:1: stroe: unknown key; did you mean store?"},
		},
		{
			name: "wrong types", file: "name: 12\nstore:\n  idleMs: soon\n  addresses: a\n  dsn: [x]\nlane:\n  queue: 1.5\n  on: yes\n  ratio: high\n  workers: -1\n",
			want: []string{
				"f.yaml:1: name: must be text, not a whole number (quote it if text is meant)",
				"f.yaml:3: store.idleMs: must be a whole number, not text",
				"f.yaml:4: store.addresses: must be a list of texts, such as [a, b], not text",
				"f.yaml:5: store.dsn: must be text, not a list",
				"f.yaml:7: lane.queue: must be a whole number, not a number with a fraction or exponent",
				"f.yaml:8: lane.on: must be true or false, not text",
				"f.yaml:9: lane.ratio: must be a number, not text",
				"f.yaml:10: lane.workers: must be a whole number, not negative",
			},
		},
		{
			name: "numbers that do not fit", file: "lane:\n  queue: 99999999999999999999\n  workers: 256\n  ratio: .inf\nstore: {idleMs: 0x10}\n",
			want: []string{
				"f.yaml:2: lane.queue: must be a whole number, not a number with a fraction or exponent",
				"f.yaml:3: lane.workers: must be a whole number, not negative",
				"f.yaml:4: lane.ratio: must be a number",
				"f.yaml:5: store.idleMs: must be a whole number",
			},
		},
		{
			name: "given twice", file: "lane:\n  queue: 3\n  queue: 4\n",
			want: []string{"f.yaml:3: lane.queue: given twice, first on line 2"},
		},
		{
			name: "no value", file: "name:\n",
			want: []string{"f.yaml:1: name: has no value; leave the key out for the default, or write \"\" for an empty text"},
		},
		{
			name: "section and key confused", file: "lane: 3\nname: {a: b}\n",
			want: []string{
				"f.yaml:1: lane: must be a section of keys, not a whole number (quote it if text is meant)",
				"f.yaml:2: name: must be text, not a section",
			},
		},
		{
			name: "aliases", file: "name: &a x\nstore: {dsn: *a}\n<<: {}\n",
			want: []string{
				"f.yaml:2: store.dsn: must be text, not an alias (aliases are not used here)",
				"f.yaml:3: <<: unknown key; allowed here: name, store, lane",
			},
		},
		{
			name: "impossible values, all of them, though Validate names one",
			file: "lane:\n  queue: 0\n  workers: 20\n",
			want: []string{
				"f.yaml:2: lane.queue: must be from 1 to 100",
				"f.yaml:3: lane.workers: 20 is out of range: must be from 0 to 16",
			},
		},
		{
			name: "the key that was set is to blame, not the default", file: "lane:\n  workers: 12\n",
			want: []string{"f.yaml:2: lane.workers: queue: must not be below workers (12)"},
		},
		{
			name: "not YAML", file: "lane:\n\tqueue: 3\n",
			want: []string{"f.yaml:2: not valid YAML: found character that cannot start any token"},
		},
		{
			name: "two documents", file: "name: x\n---\nname: y\n",
			want: []string{"f.yaml:2: a second document; a configuration is one document"},
		},
		{
			name: "environment",
			env:  []string{"STOCKADE_LANE_QUEUE=many", "STOCKADE_LANE_QEUE=3", "STOCKADE_XYZZY=1", "STOCKADE_TEST_REDIS=x", "STOCKADE_ADMIN_URL=x", "HOME=/"},
			want: []string{
				"STOCKADE_LANE_QUEUE: lane.queue: must be a whole number",
				"STOCKADE_LANE_QEUE: unknown variable; did you mean STOCKADE_LANE_QUEUE?",
				"STOCKADE_XYZZY: unknown variable; `stockade config reference` lists them all",
			},
		},
		{
			name: "flags", set: []string{"lane.queue", "lane.queu=3", "lane.queue=x", "lane=3"},
			want: []string{
				"--set: must look like key=value, such as log.level=debug",
				"--set: lane.queu: unknown key; did you mean lane.queue?",
				"--set: lane.queue: must be a whole number",
				"--set: lane: unknown key; `stockade config reference` lists them all",
			},
		},
		{
			name: "an impossible value of each source",
			env:  []string{"STOCKADE_LANE_WORKERS=99"}, set: []string{"lane.queue=-5"},
			want: []string{
				"--set: lane.queue: must be from 1 to 100",
				"STOCKADE_LANE_WORKERS: lane.workers: 99 is out of range: must be from 0 to 16",
			},
		},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			got := problemsOf(t, tt.file, tt.env, tt.set)
			if strings.Join(got, "\n") != strings.Join(tt.want, "\n") {
				t.Errorf("got\n  %s\nwant\n  %s", strings.Join(got, "\n  "), strings.Join(tt.want, "\n  "))
			}
		})
	}
}

func TestAFileThatCannotBeReadIsOneProblem(t *testing.T) {
	big := filepath.Join(t.TempDir(), "big.yaml")
	if err := os.WriteFile(big, []byte(strings.Repeat("# comment\n", maxFileBytes/10+1)), 0o600); err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]string{
		"no/such.yaml": "no/such.yaml: cannot be read: no such file or directory",
		t.TempDir():    "cannot be read: is a directory",
		big:            "is larger than 1048576 bytes",
	} {
		err := newLoader(newSample()).load(Sources{File: name})
		var problems Problems
		if !errors.As(err, &problems) || len(problems) != 1 || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: got %v, want one problem saying %q", name, err, want)
		}
	}
}

// The strongest source that names a key wins, and is named as the origin; keys that none names keep their default.
func TestTheStrongestSourceWins(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		target := newSample()
		l := newLoader(target)
		lines, env, set, want := []string{}, []string{}, []string{}, map[string][2]string{}
		for i, leaf := range []string{"queue", "workers"} {
			from := rapid.SliceOfN(rapid.Bool(), 3, 3).Draw(t, leaf)
			value, origin := fmt.Sprint([]int{10, 2}[i]), "default"
			if from[0] { // workers stay below the queue whatever is drawn
				value, origin = fmt.Sprint(11-8*i), fmt.Sprintf("f.yaml:%d", len(lines)+2)
				lines = append(lines, "  "+leaf+": "+value)
			}
			if from[1] {
				value, origin = fmt.Sprint(13-8*i), "STOCKADE_LANE_"+strings.ToUpper(leaf)
				env = append(env, origin+"="+value)
			}
			if from[2] {
				value, origin = fmt.Sprint(15-8*i), "--set"
				set = append(set, "lane."+leaf+"="+value)
			}
			want["lane."+leaf] = [2]string{value, origin}
		}
		l.readYAML("f.yaml", []byte("lane:\n"+strings.Join(lines, "\n")))
		if err := l.load(Sources{Env: env, Set: set}); err != nil {
			t.Fatal(err)
		}
		for _, leaf := range l.root.leaves() {
			w, asked := want[leaf.path]
			if !asked {
				w = [2]string{fmt.Sprint(leaf.initial.Interface()), "default"}
			}
			if got := fmt.Sprint(leaf.value.Interface()); got != w[0] || l.origin(leaf.path) != w[1] {
				t.Fatalf("%s: got %s from %s, want %s from %s", leaf.path, got, l.origin(leaf.path), w[0], w[1])
			}
		}
	})
}

func TestNamesOfKeysAndVariables(t *testing.T) {
	got := []string{}
	for _, leaf := range newLoader(newSample()).root.leaves() {
		got = append(got, leaf.path+" "+leaf.env())
	}
	want := []string{
		"name STOCKADE_NAME", "store.dsn STOCKADE_STORE_DSN", "store.apiToken STOCKADE_STORE_API_TOKEN",
		"store.addresses STOCKADE_STORE_ADDRESSES", "store.idleMs STOCKADE_STORE_IDLE_MS",
		"lane.queue STOCKADE_LANE_QUEUE", "lane.workers STOCKADE_LANE_WORKERS", "lane.ratio STOCKADE_LANE_RATIO",
		"lane.on STOCKADE_LANE_ON",
	}
	if strings.Join(got, "\n") != strings.Join(want, "\n") {
		t.Errorf("got %q, want %q", got, want)
	}
}

func FuzzYAML(f *testing.F) {
	f.Add([]byte("lane: {queue: 3}\n"))
	f.Add([]byte("name: &a [*a]\nlane: *a\n? [x]\n: y\n"))
	f.Add([]byte("a: !!binary x\n--- \n...\n%YAML 1.2\n"))
	f.Fuzz(func(t *testing.T, text []byte) {
		target := newSample()
		l := newLoader(target)
		l.readYAML("f.yaml", text)
		if err := l.load(Sources{}); err == nil && target.Lane.Validate() != nil {
			t.Errorf("accepted %q, which gives %+v", text, target.Lane)
		}
	})
}
