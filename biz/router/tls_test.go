package router

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"math/big"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// writeCertificate makes a certificate of its own for this machine and puts it into two files.
func writeCertificate(t *testing.T, cert, key, name string) *x509.CertPool {
	t.Helper()
	secret, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: name}, NotAfter: time.Now().Add(time.Hour),
		IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)}, IsCA: true, BasicConstraintsValid: true,
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, &secret.PublicKey, secret)
	if err != nil {
		t.Fatal(err)
	}
	private, err := x509.MarshalPKCS8PrivateKey(secret)
	if err != nil {
		t.Fatal(err)
	}
	text := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})
	for path, content := range map[string][]byte{cert: text, key: pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: private})} {
		if err := os.WriteFile(path, content, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	pool := x509.NewCertPool()
	pool.AppendCertsFromPEM(text)
	return pool
}

// over asks by TLS and returns the answer and the name in the certificate.
func over(t *testing.T, pool *x509.CertPool, url string, newest uint16) (*http.Response, string, error) {
	t.Helper()
	transport := &http.Transport{TLSClientConfig: &tls.Config{RootCAs: pool, MinVersion: tls.VersionTLS10, MaxVersion: newest}}
	defer transport.CloseIdleConnections()
	resp, err := (&http.Client{Transport: transport}).Get(url)
	if err != nil {
		return nil, "", err
	}
	_ = resp.Body.Close()
	return resp, resp.TLS.PeerCertificates[0].Subject.CommonName, nil
}

// Both listeners speak TLS, take over a new certificate, keep the old one when the new one is broken, and forget closed
// connections.
func TestTLS(t *testing.T) {
	dir := t.TempDir()
	cert, key := filepath.Join(dir, "cert.pem"), filepath.Join(dir, "key.pem")
	pool := writeCertificate(t, cert, key, "first")
	cfg := func(c *Config) {
		c.TLSCertFile, c.TLSKeyFile, c.AdminTLSCertFile, c.AdminTLSKeyFile = cert, key, cert, key
	}
	n := startNode(t, cfg)
	public, admin := "https://"+n.PublicAddr().String()+"/livez", "https://"+n.AdminAddr().String()+"/livez"
	for _, url := range []string{public, admin} {
		eventually(t, url+" answers", func() bool {
			resp, name, err := over(t, pool, url, tls.VersionTLS13)
			return err == nil && name == "first" && resp.StatusCode == 200 && resp.Header.Get("Strict-Transport-Security") != ""
		})
		if _, _, err := over(t, pool, url, tls.VersionTLS11); err == nil {
			t.Errorf("%s speaks TLS 1.1", url)
		}
		if resp, err := http.Get(strings.Replace(url, "https", "http", 1)); err == nil && resp.StatusCode == 200 {
			t.Errorf("%s answers without TLS", url)
		}
	}
	next := writeCertificate(t, cert, key, "second")
	eventually(t, "the new certificate is taken over", func() bool {
		_, name, err := over(t, next, public, tls.VersionTLS13)
		return err == nil && name == "second"
	})
	if err := os.WriteFile(cert, []byte("nonsense"), 0o600); err != nil {
		t.Fatal(err)
	}
	eventually(t, "the broken certificate is logged", func() bool {
		_, name, err := over(t, next, public, tls.VersionTLS13)
		if err != nil || name != "second" {
			t.Fatalf("with a broken file: %s, %v", name, err)
		}
		return len(n.log.lines("a changed certificate is ignored")) > 0
	})
	eventually(t, "closed connections are forgotten", func() bool {
		n.connections.mu.Lock()
		defer n.connections.mu.Unlock()
		return len(n.connections.open) == 0
	})
}

func TestTLSSettings(t *testing.T) {
	dir := t.TempDir()
	cfg := DefaultConfig()
	cfg.Public, cfg.Admin = "127.0.0.1:0", "127.0.0.1:0"
	cfg.AdminTLSCertFile = filepath.Join(dir, "none.pem")
	if err := cfg.Validate(); err == nil || !strings.HasPrefix(err.Error(), "adminTlsCertFile: ") {
		t.Errorf("a certificate without a key: %v", err)
	}
	cfg.AdminTLSKeyFile = cfg.AdminTLSCertFile
	if l, err := Listen(cfg); err == nil || !strings.HasPrefix(err.Error(), "adminTlsCertFile: ") {
		t.Errorf("files that are not there: %v, %v", l, err)
	}
}

func TestSecurityHeaders(t *testing.T) {
	n := startNode(t, nil)
	for _, got := range []reply{
		send(t, "GET", n.publicURL()+"/v1/skus/demo", ""), send(t, "GET", n.publicURL()+"/nothing", ""), n.buy(t, "{"),
		send(t, "GET", n.adminURL()+"/admin/v1/skus", ""), send(t, "GET", n.adminURL()+"/admin/v1/skus", "", "Authorization: no"),
		send(t, "GET", n.adminURL()+"/livez", ""),
	} {
		checkHeader(t, got, "X-Content-Type-Options", "nosniff")
		checkHeader(t, got, "Content-Security-Policy", "default-src 'none'; frame-ancestors 'none'")
		checkHeader(t, got, "Referrer-Policy", "no-referrer")
		checkHeader(t, got, "Cache-Control", "no-store")
		checkHeader(t, got, "Strict-Transport-Security", "")
	}
}
