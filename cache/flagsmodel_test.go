package cache_test

import (
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"

	"stockade/biz/sale"
)

// naiveFlags keeps all the news of every share and works out each answer from its whole history.
type naiveFlags struct {
	now   time.Duration
	notes map[sale.Share][]told[sale.Figures]
	wins  map[sale.Share][]sale.Winners
}

type told[T any] struct {
	news T
	at   time.Duration
	void bool // cleared since
}

func sameOrNewer(epoch, changes, thanEpoch, thanChanges int64) bool {
	return epoch > thanEpoch || (epoch == thanEpoch && changes >= thanChanges)
}

// current is the news that counts: of the highest epoch, then change number, the one told last.
func (n *naiveFlags) current(share sale.Share) (told[sale.Figures], bool) {
	var best told[sale.Figures]
	found := false
	for _, t := range n.notes[share] {
		if !found || sameOrNewer(t.news.Epoch, t.news.Changes, best.news.Epoch, best.news.Changes) {
			best, found = t, true
		}
	}
	return best, found
}

func (n *naiveFlags) note(f sale.Figures) {
	if f.Gone {
		delete(n.notes, f.Share)
		delete(n.wins, f.Share)
		return
	}
	n.notes[f.Share] = append(n.notes[f.Share], told[sale.Figures]{news: f, at: n.now})
	if best, _ := n.current(f.Share); f.Sealed && best.news == f && best.at == n.now {
		delete(n.wins, f.Share)
	}
}

func (n *naiveFlags) clear() {
	for _, all := range n.notes {
		for i := range all {
			all[i].void = true
		}
	}
}

// left is what a share has left, if that is known for this epoch.
func (n *naiveFlags) left(share sale.Share, epoch int64) (int64, bool) {
	t, found := n.current(share)
	if !found || t.void || t.news.Sealed || t.news.Epoch != epoch || n.now-t.at >= lifetime {
		return 0, false
	}
	return t.news.Left, true
}

// winners are the newest winners of a share, if they are as new as its figures.
func (n *naiveFlags) winners(share sale.Share) (hashes []uint64, known bool) {
	t, found := n.current(share)
	var best sale.Winners
	for _, w := range n.wins[share] {
		if sameOrNewer(w.Epoch, w.Changes, best.Epoch, best.Changes) {
			best, known = w, true
		}
	}
	return best.Hashes, known && found && best.Epoch == t.news.Epoch && best.Changes >= t.news.Changes
}

func (n *naiveFlags) total(epoch int64, slots int) (sum int64, fresh bool) {
	for _, share := range sale.Shares(slots) {
		left, known := n.left(share, epoch)
		if !known {
			return 0, false
		}
		sum += left
	}
	return sum, true
}

func (n *naiveFlags) standing(epoch int64, slots int, hash uint64, quantity int64, keyed bool) sale.Standing {
	for _, share := range []sale.Share{sale.Home(hash, slots), sale.Reserve} {
		left, fresh := n.left(share, epoch)
		hashes, known := n.winners(share)
		if !fresh || left != 0 || !known || (keyed && slices.Contains(hashes, hash)) {
			return sale.AskGate
		}
	}
	sum, fresh := n.total(epoch, slots)
	if !fresh {
		return sale.AskGate
	}
	if sum < quantity {
		return sale.FlaggedOut
	}
	return sale.FlaggedEmpty
}

func (n *naiveFlags) unwatched(epoch int64) (shares []sale.Share) {
	for _, share := range sale.Shares(sale.MaxSlots) {
		left, fresh := n.left(share, epoch)
		if _, known := n.winners(share); fresh && left == 0 && !known {
			shares = append(shares, share)
		}
	}
	return shares
}

// The flags answer like the naive model, whatever news comes in whatever order.
func TestFlagsFollowTheModel(t *testing.T) {
	answers := map[sale.Standing]int{}
	rapid.Check(t, func(t *rapid.T) {
		f, clk := newFlags(t, nil)
		model := &naiveFlags{notes: map[sale.Share][]told[sale.Figures]{}, wins: map[sale.Share][]sale.Winners{}}
		slots := rapid.IntRange(1, 3).Draw(t, "slots")
		share := rapid.SampledFrom(sale.Shares(slots))
		anEpoch, change, hash := rapid.Int64Range(1, 2), rapid.Int64Range(1, 4), rapid.Uint64Range(0, 5)
		seldom := rapid.Custom(func(t *rapid.T) bool { return rapid.IntRange(0, 14).Draw(t, "seldom") == 0 })
		t.Repeat(map[string]func(*rapid.T){
			"note": func(t *rapid.T) {
				news := sale.Figures{
					Share: share.Draw(t, "share"), Epoch: anEpoch.Draw(t, "epoch"), Changes: change.Draw(t, "changes"),
					Left: max(rapid.Int64Range(-3, 2).Draw(t, "left"), 0), Sealed: seldom.Draw(t, "sealed"),
				}
				if seldom.Draw(t, "gone") {
					news = sale.Figures{Share: news.Share, Gone: true}
				}
				f.Note(sku, news)
				model.note(news)
			},
			"note round": func(t *rapid.T) { // what a look at all shares finds near the end of a sale
				e, c := anEpoch.Draw(t, "epoch"), change.Draw(t, "changes")
				last := share.Draw(t, "last") // the only share with units
				for _, share := range sale.Shares(slots) {
					news := sale.Figures{Share: share, Epoch: e, Changes: c}
					if share == last {
						news.Left = rapid.Int64Range(0, 3).Draw(t, "left")
					}
					f.Note(sku, news)
					model.note(news)
				}
			},
			"winners": func(t *rapid.T) {
				hashes := rapid.SliceOfNDistinct(hash, 0, 2, rapid.ID).Draw(t, "hashes")
				slices.Sort(hashes)
				w := sale.Winners{Epoch: anEpoch.Draw(t, "epoch"), Changes: change.Draw(t, "changes"), Hashes: hashes}
				for _, w.Share = range sale.Shares(slots) {
					f.Winners(sku, w)
					model.wins[w.Share] = append(model.wins[w.Share], w)
				}
			},
			"wait": func(t *rapid.T) {
				d := time.Duration(rapid.IntRange(1, 800).Draw(t, "ms")) * time.Millisecond
				clk.advance(d)
				model.now += d
			},
			"clear": func(t *rapid.T) {
				if seldom.Draw(t, "really") {
					f.Clear(rapid.SampledFrom([]string{sku, ""}).Draw(t, "which"))
					model.clear()
				}
			},
			"": func(t *rapid.T) {
				for e := int64(1); e <= 2; e++ {
					wantLeft, wantFresh := model.total(e, slots)
					if left, fresh := f.Left(sku, e, slots); left != wantLeft || fresh != wantFresh {
						t.Fatalf("epoch %d: left %d, fresh %v; the model has %d, %v", e, left, fresh, wantLeft, wantFresh)
					}
					if got, want := f.Unwatched(sku, e), model.unwatched(e); !slices.Equal(got, want) {
						t.Fatalf("epoch %d: unwatched %v, the model has %v", e, got, want)
					}
					for h := range uint64(6) {
						for _, keyed := range []bool{false, true} {
							got, want := f.Standing(sku, e, slots, h, 2, keyed), model.standing(e, slots, h, 2, keyed)
							if answers[got]++; got != want {
								t.Fatalf("epoch %d, buyer %d, keyed %v: standing %d, the model has %d", e, h, keyed, got, want)
							}
						}
					}
				}
			},
		})
	})
	for _, s := range []sale.Standing{sale.AskGate, sale.FlaggedOut, sale.FlaggedEmpty} {
		if answers[s] == 0 {
			t.Errorf("no history led to standing %d", s)
		}
	}
}
