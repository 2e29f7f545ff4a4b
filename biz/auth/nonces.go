package auth

import (
	"crypto/sha256"
	"sync"
	"time"
)

// nonceSlices is into how many ages the window is cut: nonces are forgotten an age at a time.
const nonceSlices = 4

// nonceID stands for a signer and a nonce: enough bytes that no two meet.
type nonceID [16]byte

// nonces remembers the nonces of good signatures for as long as these could be sent again, a bounded number of them. Only
// whoever has a signer's secret can put one in.
type nonces struct {
	window int64 // seconds, rounded up
	age    int64 // seconds of one slice
	max    int

	mu     sync.Mutex
	count  int
	gone   int64                          // signatures made before it are forgotten
	slices map[int64]map[nonceID]struct{} // by the time of the signature, in ages
}

func newNonces(window time.Duration, most int) *nonces {
	seconds := int64((window + time.Second - 1) / time.Second)
	return &nonces{window: seconds, age: max(seconds/nonceSlices, 1), max: most, slices: map[int64]map[nonceID]struct{}{}}
}

// use takes a nonce that was signed at unix, both in seconds. One that was used before is a *Refusal, whatever the time it
// was signed at; ErrNoncesFull when there is no room to remember it.
func (n *nonces) use(signer, nonce string, unix, now int64) error {
	sum := sha256.Sum256([]byte(signer + "\n" + nonce))
	id := nonceID(sum[:])
	n.mu.Lock()
	defer n.mu.Unlock()
	n.forget(now)
	if unix < n.gone { // the clock of whoever judged its time is behind that of another request
		return refuse(SignatureHeader, notNow)
	}
	for _, slice := range n.slices { // at most twice the window has, and two
		if _, used := slice[id]; used {
			return refuse(SignatureHeader, "the signature was used before")
		}
	}
	if n.count >= n.max {
		return ErrNoncesFull
	}
	at := unix / n.age
	if n.slices[at] == nil {
		n.slices[at] = map[nonceID]struct{}{}
	}
	n.slices[at][id] = struct{}{}
	n.count++
	return nil
}

// forget drops the slices whose last signature is out of the window.
func (n *nonces) forget(now int64) {
	for at, slice := range n.slices {
		if end := (at + 1) * n.age; end <= now-n.window {
			n.gone = max(n.gone, end)
			n.count -= len(slice)
			delete(n.slices, at)
		}
	}
}
