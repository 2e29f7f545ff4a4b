//go:build services && !race

package service_test

import (
	"fmt"
	"testing"
)

// Durability and path change on real servers too: their transactions and clocks are not those of the embedded pair.
func TestModelDurabilityReal(t *testing.T) {
	const labs, histories = 2, 60
	setRapid(t, histories/labs)
	for i := range labs {
		t.Run(fmt.Sprint("lab ", i), func(t *testing.T) {
			t.Parallel()
			runDurable(t, newRealLab(t), i)
		})
	}
}
