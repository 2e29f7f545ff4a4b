package auth

import (
	"net/netip"
	"path/filepath"
	"testing"
)

func BenchmarkGateway(b *testing.B) {
	buyers := newBuyers(b, DefaultConfig())
	peer := netip.MustParseAddr("::1") // in the last of the gateways
	b.ReportAllocs()
	for b.Loop() {
		if err := buyers.Gateway(peer); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkBearer(b *testing.B) {
	rsa, ed := rsaKeys()[0], newEd25519("ed-1")
	path := filepath.Join(b.TempDir(), "keys.json")
	write(b, path, keySet(b, rsa.public, ed.public))
	cfg := jwtConfig()
	cfg.JWKSFile = path
	buyers := newBuyers(b, cfg)
	for name, token := range map[string]string{
		algHS256: hs256(b, nil),
		algRS256: sign(b, rsa.method, rsa.private, rsa.kid(), nil),
		algEdDSA: sign(b, ed.method, ed.private, ed.kid(), nil),
	} {
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				if _, err := buyers.Bearer("Bearer " + token); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

func BenchmarkSignature(b *testing.B) {
	buyers := newBuyers(b, signedConfig())
	header, r := purchase(b, testNow)
	r.Key = "another" // refused behind the MAC, so that nothing is remembered
	b.ReportAllocs()
	for b.Loop() {
		s, err := buyers.ReadSignature(header)
		if err != nil || buyers.Verify(s, r) == nil {
			b.Fatal("not judged")
		}
	}
}
