package limiter

import "time"

// Verdict is a bucket's answer to one request.
type Verdict struct {
	OK         bool
	Limit      int           // requests that a full bucket admits at once; 0 when the bucket is off and nothing limits
	Remaining  int           // requests that would be admitted right after this one
	Reset      time.Duration // until the bucket is full again
	RetryAfter time.Duration // of a refusal: until the next request is admitted
}

// quota is a token bucket in the form of the generic cell rate algorithm: instead of tokens and the time they were
// counted at, a bucket is one number, its theoretical arrival time (TAT), at which it will be full again.
//
// Times are nanoseconds since the limiter's start.
type quota struct {
	interval int64 // one token; rounded up, so the rate is never exceeded
	depth    int64 // a full bucket: burst × interval
	burst    int
	shut     bool // nothing is let through
}

// shutWait is when a bucket that lets nothing through is worth another try.
const shutWait = 5 * time.Second

func newQuota(perSecond, burst int) quota {
	if perSecond == 0 {
		return quota{}
	}
	interval := (int64(time.Second) + int64(perSecond) - 1) / int64(perSecond)
	return quota{interval: interval, depth: interval * int64(burst), burst: burst}
}

func (q quota) off() bool { return q.burst == 0 && !q.shut }

// scaled lets only so many percent through. A full bucket is as much time as before, and so fewer tokens, but one at
// least: arrival times keep their meaning.
func (q quota) scaled(percent int) quota {
	switch {
	case percent == 0:
		return quota{interval: q.interval, depth: q.depth, burst: q.burst, shut: true}
	case percent == fullScale || q.off():
		return q
	}
	interval := (q.interval*fullScale + int64(percent) - 1) / int64(percent)
	depth := max(q.depth, interval)
	return quota{interval: interval, depth: depth, burst: int(depth / interval)}
}

// take asks a bucket for one token. It returns the bucket's TAT afterwards; a refusal leaves the bucket as it was.
func (q quota) take(tat, now int64) (int64, Verdict) {
	start := max(tat, now)
	if q.shut {
		return tat, Verdict{Limit: q.burst, Reset: time.Duration(start - now), RetryAfter: shutWait}
	}
	after := start + q.interval
	if wait := after - now - q.depth; wait > 0 {
		return tat, Verdict{
			Limit:      q.burst,
			Reset:      time.Duration(start - now),
			RetryAfter: time.Duration(wait),
		}
	}
	return after, Verdict{
		OK:        true,
		Limit:     q.burst,
		Remaining: int((q.depth - (after - now)) / q.interval),
		Reset:     time.Duration(after - now),
	}
}
