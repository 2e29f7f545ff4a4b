package planted

import (
	"bytes"
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

const (
	luaDir = "shard/lua/"
	luaEnv = "PLANTED_LUA" // the directory whose scripts the binary takes
)

// outsideLua makes package shard read its scripts from a directory when it starts.
var outsideLua = bug{
	file: "shard/script.go",
	edits: []edit{
		{"//go:embed lua/*.lua\nvar sources embed.FS\n", `
type outside string

func (o outside) ReadFile(name string) ([]byte, error) { return os.ReadFile(string(o) + "/" + name) }

func (o outside) ReadDir(name string) ([]os.DirEntry, error) { return os.ReadDir(string(o) + "/" + name) }

var sources = outside(os.Getenv("` + luaEnv + `"))
`},
		{"\t\"embed\"\n", ""},
		{"\t\"fmt\"\n", "\t\"fmt\"\n\t\"os\"\n"},
	},
}

// luaBinary is the path of package shard's test binary with outsideLua.
type luaBinary string

// buildLua builds the binary and checks that its tests pass over the scripts as they are.
func buildLua(t *testing.T) luaBinary {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), bugBound)
	defer cancel()
	lua := luaBinary(filepath.Join(t.TempDir(), "shard.test"))
	build := plainGo(ctx, "test", "-c", "-overlay", outsideLua.overlay(t), "-o", string(lua), shardPackage)
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	for _, b := range bugs {
		if !strings.HasPrefix(b.file, luaDir) {
			continue
		}
		b.edits = nil
		if out, err := lua.test(ctx, t, b); err != nil || !bytes.HasPrefix(out, []byte("PASS")) {
			t.Fatalf("without a bug: %v\n%s", err, out)
		}
	}
	return lua
}

// test runs the tests of a bug over the scripts with the bug in one of them.
func (lua luaBinary) test(ctx context.Context, t *testing.T, b bug) (output []byte, err error) {
	t.Helper()
	scripts := t.TempDir()
	if err := os.CopyFS(filepath.Join(scripts, "lua"), os.DirFS(filepath.Join(root, luaDir))); err != nil {
		t.Fatal(err)
	}
	changed := filepath.Join(scripts, "lua", filepath.Base(b.file))
	if err := os.WriteFile(changed, []byte(b.planted(t)), 0o600); err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(ctx, string(lua), "-test.failfast", "-test.run", b.tests)
	cmd.Dir = filepath.Join(root, shardPackage)
	cmd.Env = append(os.Environ(), luaEnv+"="+scripts)
	return cmd.CombinedOutput()
}
