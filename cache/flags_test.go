package cache_test

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"
	"time"

	"pgregory.net/rapid"

	"stockade/biz/sale"
	"stockade/cache"
)

const (
	sku      = "demo"
	slots    = 3
	epoch    = int64(4)
	lifetime = 1500 * time.Millisecond
	buyer    = uint64(300) // at home in slot 0
	home     = sale.Share(0)
)

func newFlags(t rapid.TB, change func(*cache.Config)) (*cache.Flags, *clock) {
	clk := &clock{}
	f, err := cache.NewFlags(config(change), clk.now)
	if err != nil {
		t.Fatal(err)
	}
	return f, clk
}

// figures of this epoch.
func figures(share sale.Share, left, changes int64) sale.Figures {
	return sale.Figures{Share: share, Epoch: epoch, Left: left, Changes: changes}
}

// soldOut notes that every share is empty at change number 10, with winners as of then.
func soldOut(f *cache.Flags, sku string, hashes ...uint64) {
	for _, share := range sale.Shares(slots) {
		f.Note(sku, figures(share, 0, 10))
		f.Winners(sku, sale.Winners{Share: share, Epoch: epoch, Changes: 10, Hashes: slices.Clone(hashes)})
	}
}

func want(t *testing.T, f *cache.Flags, when string, quantity int64, keyed bool, want sale.Standing) {
	t.Helper()
	if got := f.Standing(sku, epoch, slots, buyer, quantity, keyed); got != want {
		t.Errorf("%s: standing is %d, want %d", when, got, want)
	}
}

// A flag works from the moment it is set: nothing is buffered.
func TestSetThenReadAtOnce(t *testing.T) {
	f, _ := newFlags(t, nil)
	for i := range 10_000 {
		id := fmt.Sprint("sku-", i)
		soldOut(f, id)
		if got := f.Standing(id, epoch, slots, buyer, 1, true); got != sale.FlaggedOut {
			t.Fatalf("%s: standing is %d right after it was noted", id, got)
		}
	}
}

// After stock came back, no path leaves a SOLD_OUT in memory.
func TestStockComesBack(t *testing.T) {
	for name, back := range map[string]func(f *cache.Flags, clk *clock){
		"clear":             func(f *cache.Flags, _ *clock) { f.Clear(sku) },
		"clear all":         func(f *cache.Flags, _ *clock) { f.Clear("") },
		"a unit at home":    func(f *cache.Flags, _ *clock) { f.Note(sku, figures(home, 1, 11)) },
		"a unit in reserve": func(f *cache.Flags, _ *clock) { f.Note(sku, figures(sale.Reserve, 1, 11)) },
		"a newer epoch": func(f *cache.Flags, _ *clock) {
			f.Note(sku, sale.Figures{Share: home, Epoch: epoch + 1, Left: 5, Changes: 1})
		},
		"sealed": func(f *cache.Flags, _ *clock) {
			f.Note(sku, sale.Figures{Share: home, Epoch: epoch + 1, Sealed: true, Changes: 1})
		},
		"sealed at this epoch": func(f *cache.Flags, _ *clock) {
			f.Note(sku, sale.Figures{Share: home, Epoch: epoch, Sealed: true, Changes: 10})
		},
		"gone":          func(f *cache.Flags, _ *clock) { f.Note(sku, sale.Figures{Share: home, Gone: true}) },
		"reserve gone":  func(f *cache.Flags, _ *clock) { f.Note(sku, sale.Figures{Share: sale.Reserve, Gone: true}) },
		"lifetime over": func(_ *cache.Flags, clk *clock) { clk.advance(lifetime) },
	} {
		t.Run(name, func(t *testing.T) {
			f, clk := newFlags(t, nil)
			soldOut(f, sku)
			clk.advance(lifetime - 1)
			want(t, f, "before", 1, true, sale.FlaggedOut)
			back(f, clk)
			want(t, f, "after", 1, true, sale.AskGate)
			want(t, f, "after, without key", 1, false, sale.AskGate)
		})
	}
}

// News that was on its way while the stock came back must not raise the flag again.
func TestLateNewsAfterClear(t *testing.T) {
	f, _ := newFlags(t, nil)
	soldOut(f, sku)
	f.Clear(sku)
	for _, share := range sale.Shares(slots) {
		f.Note(sku, figures(share, 0, 9))
		f.Note(sku, sale.Figures{Share: share, Epoch: epoch - 1, Changes: 99})
	}
	want(t, f, "after older news", 1, true, sale.AskGate)
	for _, share := range sale.Shares(slots) {
		f.Note(sku, figures(share, 0, 10))
	}
	want(t, f, "after the same news was read again", 1, true, sale.FlaggedOut)
}

func TestOtherSharesHoldUnits(t *testing.T) {
	f, _ := newFlags(t, nil)
	soldOut(f, sku)
	f.Note(sku, figures(1, 2, 11))
	for quantity, standing := range map[int64]sale.Standing{1: sale.FlaggedEmpty, 2: sale.FlaggedEmpty, 3: sale.FlaggedOut} {
		want(t, f, fmt.Sprint("quantity ", quantity), quantity, true, standing)
	}
	if left, fresh := f.Left(sku, epoch, slots); left != 2 || !fresh {
		t.Errorf("left is %d, fresh %v", left, fresh)
	}
}

func TestWinnersReachTheGate(t *testing.T) {
	for _, where := range []sale.Share{home, sale.Reserve} {
		f, _ := newFlags(t, nil)
		soldOut(f, sku)
		f.Winners(sku, sale.Winners{Share: where, Epoch: epoch, Changes: 11, Hashes: []uint64{1, buyer, 999}})
		want(t, f, "a winner's retry", 1, true, sale.AskGate)
		want(t, f, "a winner's new request", 1, false, sale.FlaggedOut)
	}
	f, _ := newFlags(t, nil)
	soldOut(f, sku)
	f.Winners(sku, sale.Winners{Share: 1, Epoch: epoch, Changes: 11, Hashes: []uint64{buyer}})
	want(t, f, "a winner elsewhere is not at home there", 1, true, sale.FlaggedOut)
}

// Without winners as new as the figures a flag is not in effect, and the share is listed to be looked at.
func TestFlagWaitsForWinners(t *testing.T) {
	f, _ := newFlags(t, nil)
	soldOut(f, sku)
	f.Note(sku, figures(home, 0, 12))
	want(t, f, "winners are behind", 1, false, sale.AskGate)
	if got := f.Unwatched(sku, epoch); !slices.Equal(got, []sale.Share{home}) {
		t.Errorf("unwatched %v", got)
	}
	f.Winners(sku, sale.Winners{Share: home, Epoch: epoch - 1, Changes: 50})
	f.Winners(sku, sale.Winners{Share: home, Epoch: epoch, Changes: 11})
	want(t, f, "winners are still behind", 1, false, sale.AskGate)
	f.Winners(sku, sale.Winners{Share: home, Epoch: epoch, Changes: 13})
	want(t, f, "winners are ahead", 1, false, sale.FlaggedOut)
	f.Winners(sku, sale.Winners{Share: home, Epoch: epoch, Changes: 5})
	want(t, f, "older winners came late", 1, false, sale.FlaggedOut)
	if got := f.Unwatched(sku, epoch); got != nil {
		t.Errorf("unwatched %v", got)
	}
}

func TestImplausibleIsNotAnswered(t *testing.T) {
	f, _ := newFlags(t, nil)
	soldOut(f, sku)
	for _, share := range []sale.Share{-2, sale.MaxSlots, 1 << 40} {
		f.Note(sku, figures(share, 7, 99))
		f.Winners(sku, sale.Winners{Share: share, Epoch: epoch, Changes: 99})
	}
	for _, n := range []int{-1, 0, slots + 1, sale.MaxSlots + 1} {
		if got := f.Standing(sku, epoch, n, buyer, 1, false); got != sale.AskGate {
			t.Errorf("%d slots: standing is %d", n, got)
		}
		if left, fresh := f.Left(sku, epoch, n); fresh || left != 0 {
			t.Errorf("%d slots: left is %d, fresh %v", n, left, fresh)
		}
	}
	want(t, f, "at the right number of slots", 1, true, sale.FlaggedOut)
}

// The oldest SKU makes room when its flags are out of effect; those in effect stay.
func TestSKUsAreBounded(t *testing.T) {
	const limit = 3
	f, clk := newFlags(t, func(c *cache.Config) { c.MaxFlaggedSKUs = limit })
	known := func(id string) bool { return f.Standing(id, epoch, slots, buyer, 1, false) == sale.FlaggedOut }
	for i := range limit {
		soldOut(f, fmt.Sprint("sku-", i))
		clk.advance(time.Millisecond)
	}
	soldOut(f, "late")
	if known("late") || !known("sku-0") || !known("sku-1") || !known("sku-2") {
		t.Fatal("a newcomer pushed out flags in effect")
	}
	clk.advance(lifetime - 2*time.Millisecond) // sku-0 and sku-1 are over, sku-2 is not
	soldOut(f, "sku-0")
	soldOut(f, "late")
	if !known("late") || !known("sku-0") || known("sku-1") || !known("sku-2") {
		t.Fatal("the SKU that was noted longest ago did not make room")
	}
}

func TestWinnersAreBounded(t *testing.T) {
	f, clk := newFlags(t, func(c *cache.Config) { c.MaxWinners = 4 * (slots + 1) })
	known := func(id string) bool { return f.Standing(id, epoch, slots, buyer, 1, false) == sale.FlaggedOut }
	soldOut(f, "a", 1, 2, 3, 4)
	soldOut(f, "b", 5)
	if !known("a") || known("b") {
		t.Fatal("winners beyond the limit were remembered")
	}
	if got := f.Unwatched("b", epoch); len(got) != slots+1 {
		t.Fatalf("unwatched %v", got)
	}
	f.Note("a", sale.Figures{Share: home, Gone: true}) // its winners leave room for one share's
	soldOut(f, "b", 5)
	if f.Standing("b", epoch, slots, buyer, 1, false) != sale.FlaggedOut {
		t.Fatal("room that was given back is not used")
	}
	clk.advance(lifetime)
	soldOut(f, "b", 1, 2, 3, 4)
	if !known("b") {
		t.Fatal("winners of a SKU out of effect did not make room")
	}
	soldOut(f, "b", 1, 2, 3, 4, 5)
	clk.advance(lifetime)
	for range 3 { // counting must not drift
		soldOut(f, "b", 1, 2)
		soldOut(f, "c", 1, 2)
		if !known("b") || !known("c") {
			t.Fatal("room for two SKUs with half the winners each")
		}
	}
}

// Many goroutines tell news in any order; what stays is the newest. The readers' part is left to the race detector.
func TestNewestNewsStays(t *testing.T) {
	const tellers, news = 4, 200
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	f, _ := newFlags(t, nil)
	stop := make(chan struct{})
	var telling, reading sync.WaitGroup
	for n := range uint64(tellers) {
		telling.Go(func() {
			rnd := rand.New(rand.NewPCG(seed, n))
			for _, change := range rnd.Perm(news) {
				for _, share := range sale.Shares(slots) {
					left := int64(0)
					if change == news-1 {
						left = 5
					}
					f.Note(sku, figures(share, left, int64(change)))
					f.Winners(sku, sale.Winners{Share: share, Epoch: epoch, Changes: int64(change), Hashes: []uint64{buyer}})
				}
				if change%50 == 0 {
					f.Note("other", sale.Figures{Share: home, Gone: change%100 == 0, Epoch: epoch})
				}
			}
		})
	}
	for range 2 {
		reading.Go(func() {
			for {
				select {
				case <-stop:
					return
				default:
				}
				if f.Standing(sku, epoch, slots, buyer, 1, true) != sale.AskGate {
					t.Error("a winner's retry was answered from memory")
					return
				}
				f.Unwatched(sku, epoch)
				f.Left(sku, epoch, slots)
				f.Clear("other")
			}
		})
	}
	telling.Wait()
	close(stop)
	reading.Wait()
	if left, fresh := f.Left(sku, epoch, slots); left != 5*(slots+1) || !fresh {
		t.Fatalf("left is %d, fresh %v, want the newest news", left, fresh)
	}
}

func TestReadingFlagsDoesNotAllocate(t *testing.T) {
	f, _ := newFlags(t, nil)
	soldOut(f, sku, 1, 2, 3)
	if n := testing.AllocsPerRun(1000, func() {
		f.Standing(sku, epoch, slots, buyer, 1, true)
		f.Left(sku, epoch, slots)
		f.Note(sku, figures(home, 0, 10)) // the same news: what a sold-out share says all the time
	}); n != 0 {
		t.Fatalf("%v allocations", n)
	}
}
