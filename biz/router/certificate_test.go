//go:build unix

package router

import (
	"crypto/tls"
	"log/slog"
	"os"
	"path/filepath"
	"syscall"
	"testing"
)

// A broken pair is logged when it breaks, and again when it is broken in another way or anew; not at every look.
func TestABrokenCertificateIsLoggedOnce(t *testing.T) {
	dir := t.TempDir()
	cert, key := filepath.Join(dir, "cert.pem"), filepath.Join(dir, "key.pem")
	writeCertificate(t, cert, key, "first")
	c, err := newCertificate(cert, key)
	if err != nil {
		t.Fatal(err)
	}
	book := &logBook{}
	c.log = slog.New(slog.NewTextHandler(book, nil))
	nonsense := func() {
		if err := os.WriteFile(cert, []byte("nonsense"), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	for i, step := range []struct {
		change         func()
		ignored, taken int // lines so far
	}{
		{func() {}, 0, 0},
		{nonsense, 1, 0},
		{func() { _ = os.Remove(cert) }, 2, 0},
		{func() { writeCertificate(t, cert, key, "second") }, 2, 1},
		{nonsense, 3, 1},
	} {
		before := c.current.Load()
		step.change()
		for range 3 {
			c.look()
		}
		ignored, taken := len(book.lines("a changed certificate is ignored")), len(book.lines("certificate read"))
		if ignored != step.ignored || taken != step.taken {
			t.Errorf("step %d: ignored %d times, read %d times, want %d and %d", i, ignored, taken, step.ignored, step.taken)
		}
		if i != 3 && c.current.Load() != before {
			t.Errorf("step %d: another certificate is used", i)
		}
	}
}

// While the disk does not answer, clients connect with the certificate before.
func TestHandshakesDoNotWaitForTheDisk(t *testing.T) {
	dir := t.TempDir()
	cert, key := filepath.Join(dir, "cert.pem"), filepath.Join(dir, "key.pem")
	pool := writeCertificate(t, cert, key, "first")
	n := startNode(t, func(c *Config) { c.TLSCertFile, c.TLSKeyFile = cert, key })
	silent := filepath.Join(dir, "silent.pem")
	if err := syscall.Mkfifo(silent, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Rename(silent, cert); err != nil {
		t.Fatal(err)
	}
	disk, err := os.OpenFile(cert, os.O_WRONLY, 0) // returns once a look reads
	if err != nil {
		t.Fatal(err)
	}
	for range 3 {
		if _, name, err := over(t, pool, "https://"+n.PublicAddr().String()+"/livez", tls.VersionTLS13); err != nil || name != "first" {
			t.Errorf("got %q, %v", name, err)
		}
	}
	if logged := n.log.lines("a changed certificate is ignored"); len(logged) != 0 {
		t.Errorf("the look ended: %q", logged)
	}
	// The next look must find a file, or it waits for ever.
	next := filepath.Join(dir, "next.pem")
	pool = writeCertificate(t, next, key, "second")
	if err := os.Rename(next, cert); err != nil {
		t.Fatal(err)
	}
	_ = disk.Close()
	eventually(t, "the next certificate is taken over", func() bool {
		_, name, err := over(t, pool, "https://"+n.PublicAddr().String()+"/livez", tls.VersionTLS13)
		return err == nil && name == "second"
	})
}
