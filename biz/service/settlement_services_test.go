//go:build services

package service_test

import (
	"testing"
	"time"
)

// On a server the windows end by its own clock: payments begin shortly before.
func TestPaymentsRaceExpiryReal(t *testing.T) {
	paymentsRaceExpiry(t, newRealLab(t), 1000, 8*time.Second, func(expires time.Time) {
		<-time.After(time.Until(expires.Add(-raceSpread / 2))) // for the race, not for a result
	})
}

func TestCreditsRaceResharesReal(t *testing.T) { creditsRaceReshares(t, newRealLab(t), 300) }
