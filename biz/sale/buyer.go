package sale

import (
	"unicode"
	"unicode/utf8"
)

// ValidBuyerID reports whether id can name a buyer: 1 to MaxBuyerID bytes of printable UTF-8.
func ValidBuyerID(id string) bool {
	if id == "" || len(id) > MaxBuyerID || !utf8.ValidString(id) {
		return false
	}
	for _, r := range id {
		if !unicode.IsPrint(r) {
			return false
		}
	}
	return true
}
