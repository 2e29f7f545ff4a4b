package auth

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

// A nonce is refused for as long as its signature could be sent again, and takes no room any longer.
func TestNoncesAreRememberedForTheirWindow(t *testing.T) {
	seed := uint64(time.Now().UnixNano())
	t.Logf("seed %d", seed)
	rnd := rand.New(rand.NewPCG(seed, 0))
	for _, window := range []int64{1, 2, 3, 7, 30} {
		n := newNonces(time.Duration(window)*time.Second, 1<<20)
		type use struct {
			nonce string
			unix  int64
		}
		var used []use
		now := int64(1_800_000_000)
		for i := range 3000 {
			now += rnd.Int64N(2)
			fresh := use{fmt.Sprint(i), now - window + rnd.Int64N(2*window+1)}
			if err := n.use("a", fresh.nonce, fresh.unix, now); err != nil {
				t.Fatalf("window %d: a fresh nonce: %v", window, err)
			}
			used = append(used, fresh)
			if again := used[rnd.IntN(len(used))]; again.unix >= now-window {
				var refusal *Refusal
				if err := n.use("a", again.nonce, again.unix, now); !errors.As(err, &refusal) {
					t.Fatalf("window %d: a nonce of %d again at %d: %v", window, again.unix, now, err)
				}
			}
		}
		kept := 0
		for _, u := range used {
			if u.unix >= now-window-max(window/nonceSlices, 1) {
				kept++
			}
		}
		if n.count > kept {
			t.Errorf("window %d: %d nonces are remembered, %d could matter", window, n.count, kept)
		}
	}
}

func TestSignersHaveTheirOwnNonces(t *testing.T) {
	n := newNonces(30*time.Second, 10)
	for _, signer := range []string{"a", "b"} {
		if err := n.use(signer, "n", 1000, 1000); err != nil {
			t.Errorf("%s: %v", signer, err)
		}
	}
	var refusal *Refusal
	if err := n.use("a", "n", 1001, 1000); !errors.As(err, &refusal) {
		t.Errorf("the same nonce at another time: %v", err)
	}
}

func TestAFullNonceStore(t *testing.T) {
	n := newNonces(30*time.Second, 3)
	for i := range 3 {
		if err := n.use("a", fmt.Sprint(i), 1000, 1000); err != nil {
			t.Fatal(err)
		}
	}
	if err := n.use("a", "3", 1000, 1000); !errors.Is(err, ErrNoncesFull) {
		t.Errorf("over the bound: %v", err)
	}
	var refusal *Refusal
	if err := n.use("a", "0", 1000, 1000); !errors.As(err, &refusal) {
		t.Errorf("a used one while it is full: %v", err)
	}
	if err := n.use("a", "3", 1040, 1040); err != nil {
		t.Errorf("behind the window: %v", err)
	}
}

// A signature that waited while its nonce was forgotten must not pass after all.
func TestALateJudgementFindsNoRoom(t *testing.T) {
	n := newNonces(30*time.Second, 10)
	if err := n.use("a", "n", 1000, 1000); err != nil {
		t.Fatal(err)
	}
	if err := n.use("a", "m", 1040, 1040); err != nil { // forgets the first
		t.Fatal(err)
	}
	var refusal *Refusal
	if err := n.use("a", "n", 1000, 1029); !errors.As(err, &refusal) {
		t.Errorf("a forgotten nonce: %v", err)
	}
}

func TestOneOfManyWinsANonce(t *testing.T) {
	n := newNonces(30*time.Second, 1000)
	var won atomic.Int64
	var all sync.WaitGroup
	for range 100 {
		all.Go(func() {
			if n.use("a", "n", 1000, 1000) == nil {
				won.Add(1)
			}
		})
	}
	all.Wait()
	if won.Load() != 1 {
		t.Errorf("%d requests used one nonce", won.Load())
	}
}
