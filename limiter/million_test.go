//go:build !race

package limiter_test

import (
	"encoding/binary"
	"hash/maphash"
	"math/rand/v2"
	"net/netip"
	"runtime"
	"strconv"
	"testing"
	"time"

	"stockade/limiter"
)

const (
	million     = 1_000_000
	memoryBound = 128 << 20        // bytes, for all buckets together
	holdUpBound = time.Millisecond // of a take, by what the tables do beside it
	likeChance  = 1.5              // so many more takes may be held up than calls that have no table, and then some:
	thenSome    = 50               // this machine holds everybody up
)

// idle takes about as long as a take and has no table.
func idle(seed maphash.Seed, id string) (sum uint64) {
	for range 50 {
		sum ^= maphash.String(seed, id)
	}
	return sum
}

func heap() uint64 {
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return m.HeapAlloc
}

// A million buyers and a million addresses, all new, pass through the buckets: memory stays within its bound, and takes are
// held up no more often than anything else that runs here, for the tables have no upkeep.
func TestMillionsPassWithinMemoryAndTime(t *testing.T) {
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	before := heap()
	cfg := limiter.DefaultConfig()
	l, err := limiter.New(cfg, time.Now)
	if err != nil {
		t.Fatal(err)
	}
	var heldUp, anyway, admitted int
	var inTakes, inIdle time.Duration
	var sum uint64
	late := func(took time.Duration, count *int, total *time.Duration) {
		*total += took
		if took > holdUpBound {
			*count++
		}
	}
	hashes := maphash.MakeSeed()
	for i := range uint64(million) {
		buyer, addr := "u-"+strconv.FormatUint(seed+i, 36), address(seed+i)
		began := time.Now()
		bought := l.Buyer(buyer)
		second := time.Now()
		sum ^= idle(hashes, buyer)
		third := time.Now()
		came := l.Address(addr)
		fourth := time.Now()
		sum ^= idle(hashes, buyer)
		ended := time.Now()
		late(second.Sub(began), &heldUp, &inTakes)
		late(third.Sub(second), &anyway, &inIdle)
		late(fourth.Sub(third), &heldUp, &inTakes)
		late(ended.Sub(fourth), &anyway, &inIdle)
		if bought.OK && came.OK {
			admitted++
		}
	}
	got := heap() - before
	t.Logf("a million buyers and a million addresses: heap %d MiB; %d takes took more than %v, of %v in all; of calls without a table %d, of %v in all (%d)",
		got>>20, heldUp, holdUpBound, inTakes, anyway, inIdle, sum&1)
	if got > memoryBound {
		t.Errorf("buckets take %d MiB, want at most %d", got>>20, memoryBound>>20)
	}
	if float64(heldUp) > likeChance*float64(anyway)*float64(inTakes)/float64(inIdle)+thenSome {
		t.Errorf("%d takes were held up for more than %v, and %d calls without a table", heldUp, holdUpBound, anyway)
	}
	if admitted < million*99/100 {
		t.Errorf("%d of a million who came once were admitted", admitted)
	}
	runtime.KeepAlive(l)
}

// address is an IPv6 address with a /64 of its own.
func address(n uint64) netip.Addr {
	var raw [16]byte
	binary.BigEndian.PutUint64(raw[:8], n)
	return netip.AddrFrom16(raw)
}
