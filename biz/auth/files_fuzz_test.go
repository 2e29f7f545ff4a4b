package auth

import (
	"crypto/ed25519"
	"crypto/rsa"
	"testing"
)

// FuzzKeyFile reads anything as a JWKS: it is refused whole, or has public keys for signatures, of sizes that may be.
func FuzzKeyFile(f *testing.F) {
	for _, seed := range []string{
		"", "{}", `{"keys":[]}`, `{"keys":null}`, `[]`, `{"keys":[{"kty":"OKP","crv":"Ed25519","kid":"a","x":"11qYAYKxCrfVS_7TyWQHOg7hcvPapiMlrwIaaPcHURo"}]}`,
		`{"keys":[{"kty":"OKP","crv":"Ed25519","x":""}]}`, `{"keys":[{"kty":"RSA","n":"AQ","e":"AQAB"}]}`, `{"keys":[{"kty":"RSA","n":"","e":""}]}`,
		`{"keys":[{"kty":"oct","k":"c2VjcmV0"}]}`, `{"keys":[{"kty":"OKP","crv":"Ed25519","x":"AA","d":"AA"}]}`, `{"keys":[{"kty":"EC","crv":"P-256"}]}`,
		`{"keys":[{"kty":"OKP","crv":"Ed25519","kid":"a","x":"11qYAYKxCrfVS_7TyWQHOg7hcvPapiMlrwIaaPcHURo","x5u":"http://127.0.0.1/","x5c":["AA"]}]}`,
	} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		keys, err := parseKeys(text)
		if err != nil {
			if keys != nil {
				t.Fatalf("%q: keys beside %v", text, err)
			}
			return
		}
		if len(keys) == 0 || len(keys) > maxKeys {
			t.Fatalf("%q has %d keys", text, len(keys))
		}
		for id, key := range keys {
			switch key := key.(type) {
			case ed25519.PublicKey:
				if len(key) != ed25519.PublicKeySize {
					t.Fatalf("%q: %d bytes of %q", text, len(key), id)
				}
			case *rsa.PublicKey:
				if bits := key.N.BitLen(); bits < minRSABits || bits > maxRSABits {
					t.Fatalf("%q: %d bits of %q", text, bits, id)
				}
			default:
				t.Fatalf("%q: %T of %q", text, key, id)
			}
		}
	})
}

// FuzzAdminTokensFile reads anything as a file of admin tokens: it is refused whole, or names operators of roles that there
// are, each once, whom no empty or short token opens.
func FuzzAdminTokensFile(f *testing.F) {
	entry := "- {name: ann, role: viewer, sha256: " + digest("stk_x") + "}\n"
	for _, seed := range []string{
		"", "[]", entry, entry + entry, "- {name: ann, role: root, sha256: " + digest("x") + "}\n", "- {name: ann}\n", "{}", "- []\n",
		"- {name: buyer, role: admin, sha256: " + digest("x") + "}\n", entry + "---\n" + entry, "- &a {name: a, role: admin, sha256: \"\"}\n- *a\n",
		"- {name: ann, role: admin, sha256: " + digest("x") + ", expires: 2026-13-01}\n", "- {name: a, token: b}\n",
	} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		all, err := ParseAdminTokens(text)
		if err != nil {
			if all != nil {
				t.Fatalf("%q: tokens beside %v", text, err)
			}
			return
		}
		seen := map[string]bool{}
		for _, token := range all {
			if !token.Role.Valid() || token.Name == "" || len(token.SHA256) != 64 || seen[token.Name] || token.Matches("") && token.SHA256 != digest("") {
				t.Fatalf("%q names %+v", text, token)
			}
			seen[token.Name] = true
		}
	})
}
