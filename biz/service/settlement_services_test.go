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

func TestManyOrdersExpireAtOnceReal(t *testing.T) {
	manyOrdersExpire(t, newRealLab(t), 10_000, 2*time.Second, time.Second, func(time.Time) {})
}

func TestCreditsRaceResharesReal(t *testing.T) { creditsRaceReshares(t, newRealLab(t), 300) }
