package cache_test

import (
	"testing"
	"time"

	"stockade/biz/sale"
)

// What was last known of the shares is remembered when it is long out of effect, but not across epochs.
func TestFlagsRememberWhatTheyWereToldLast(t *testing.T) {
	f, clk := newFlags(t, nil)
	if _, known := f.Remembered(sku, epoch, slots); known {
		t.Error("known before anything was noted")
	}
	for i, share := range sale.Shares(slots) {
		if _, known := f.Remembered(sku, epoch, slots); known {
			t.Errorf("known with %d shares", i)
		}
		f.Note(sku, figures(share, 3, 10))
	}
	for when, later := range map[string]func(){
		"at once": func() {}, "when old": func() { clk.advance(time.Hour) }, "when cleared": func() { f.Clear(sku) },
	} {
		later()
		if left, known := f.Remembered(sku, epoch, slots); !known || left != 3*int64(slots+1) {
			t.Errorf("%s: %d left, known %t", when, left, known)
		}
	}
	if _, known := f.Remembered(sku, epoch+1, slots); known {
		t.Error("figures of an older epoch are taken for this one's")
	}
	want(t, f, "out of effect", 1, true, sale.AskGate)
}
