package mq

import (
	"context"
	"time"
)

// A sweeper looks sweepsPerAge times in the age that it waits for, so that a row is found soon after it came of age,
// but at least once in maxSweepPeriod.
const (
	sweepsPerAge   = 3
	minSweepPeriod = 10 * time.Millisecond
	maxSweepPeriod = 10 * time.Second
)

// sweepEvery calls sweep again and again until the relay closes; at once, while sweep says that there is more. The
// waits are jittered, so that nodes that started together do not sweep together.
func (r *Relay) sweepEvery(name string, age time.Duration, sweep func(context.Context) (more bool, err error)) {
	period := sweepPeriod(age)
	for {
		select {
		case <-r.closing:
			return
		case <-r.deps.After(jitter(period)):
		}
		for more := true; more && !r.isClosing(); {
			var err error
			more, err = sweep(r.ctx)
			if err != nil {
				r.deps.Log.Warn("relay: a sweep failed and will be tried again", "sweep", name, "error", err)
				more = false
			}
		}
	}
}

func sweepPeriod(age time.Duration) time.Duration {
	return min(max(age/sweepsPerAge, minSweepPeriod), maxSweepPeriod)
}

func (r *Relay) isClosing() bool {
	select {
	case <-r.closing:
		return true
	default:
		return false
	}
}

func (r *Relay) storeContext(ctx context.Context) (context.Context, context.CancelFunc) {
	return context.WithTimeout(ctx, ms(r.cfg.StoreTimeoutMs))
}
