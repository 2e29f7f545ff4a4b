package auth

import "time"

// Expiries tells when each token ends, by name; zero: never.
func (a *AdminTokens) Expiries() map[string]time.Time {
	ends := map[string]time.Time{}
	for _, t := range a.file.value() {
		ends[t.who.Name] = t.expires
	}
	return ends
}
