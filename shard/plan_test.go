package shard

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"stockade/biz/sale"
)

var skuIDs = rapid.StringMatching(`[A-Za-z0-9._-]{1,64}`)

func hashSlot(tag string) int { return int(crc16(0, []byte(tag)) % hashSlots) }

func TestCRC16IsTheOneOfRedis(t *testing.T) {
	if got := crc16(0, []byte("123456789")); got != 0x31C3 {
		t.Fatalf("crc16(123456789) = %#x, want 0x31c3", got)
	}
}

// TestTagsSpreadEvenly cuts the hash-slot space the way a cluster of equal masters does.
func TestTagsSpreadEvenly(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		at := slotsOf(skuIDs.Draw(t, "sku"))
		for slots := 1; slots <= sale.MaxSlots; slots++ {
			for _, masters := range []int{1, 2, 3, 4, 6, 8} {
				apart := 3
				if slots&(slots-1) == 0 { // a power of two is spread perfectly
					apart = 1
				}
				if counts := countPerMaster(at[:slots], masters); slices.Max(counts)-slices.Min(counts) > apart {
					t.Fatalf("%d slots lie on %d masters as %v", slots, masters, counts)
				}
			}
		}
	})
}

// slotsOf are the hash slots of all slots of a SKU.
func slotsOf(sku string) []int {
	at := make([]int, sale.MaxSlots)
	for i := range at {
		at[i] = hashSlot(Tag(sku, sale.Share(i)))
	}
	return at
}

func countPerMaster(at []int, masters int) []int {
	counts := make([]int, masters)
	for _, slot := range at {
		counts[slot*masters/hashSlots]++
	}
	return counts
}

func TestReserveLiesOnTheLightestMaster(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		sku := skuIDs.Draw(t, "sku")
		reserve, at := hashSlot(Tag(sku, sale.Reserve)), slotsOf(sku)
		for _, masters := range []int{1, 2, 3, 4, 6, 8} {
			counts := countPerMaster(at, masters)
			if m := reserve * masters / hashSlots; counts[m] != slices.Min(counts) {
				t.Fatalf("the reserve lies on master %d of %v", m, counts)
			}
		}
	})
}

func TestFirstSlotsOfManySKUsSpread(t *testing.T) {
	counts := make([]int, 3)
	for i := range 300 {
		counts[hashSlot(Tag(fmt.Sprintf("sku-%d", i), 0))*3/hashSlots]++
	}
	if slices.Min(counts) < 70 {
		t.Fatalf("slot 0 of 300 SKUs lies on 3 masters as %v", counts)
	}
}

func TestTagIsPure(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		sku := skuIDs.Draw(t, "sku")
		share := sale.Share(rapid.IntRange(-1, sale.MaxSlots-1).Draw(t, "share"))
		tag := Tag(sku, share)
		if again := Tag(sku, share); again != tag {
			t.Fatalf("%q, then %q", tag, again)
		}
		name := share.String()
		if share == sale.Reserve {
			name = "r"
		}
		if !strings.HasPrefix(tag, sku+"."+name+".") {
			t.Fatalf("tag %q of %s of %s", tag, share, sku)
		}
	})
}

// TestKeysOfAShareHaveOneTag reads tags the way Redis does: what stands between the first { and the next }.
func TestKeysOfAShareHaveOneTag(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		sku := skuIDs.Draw(t, "sku")
		share := sale.Share(rapid.IntRange(-1, sale.MaxSlots-1).Draw(t, "share"))
		prefix := rapid.StringMatching(prefixPattern.String()).Draw(t, "prefix")
		k, err := newKeyring(prefix, 1).of(sku, share)
		if err != nil {
			t.Fatal(err)
		}
		for _, arg := range k.args {
			key := arg.(string)
			if !strings.HasPrefix(key, prefix+":{") {
				t.Fatalf("key %q does not begin with %q", key, prefix)
			}
			_, rest, _ := strings.Cut(key, "{")
			if tag, _, found := strings.Cut(rest, "}"); !found || tag != Tag(sku, share) {
				t.Fatalf("key %q has tag %q, want %q", key, tag, Tag(sku, share))
			}
		}
		if len(map[any]bool{k.args[0]: true, k.args[1]: true, k.args[2]: true, k.args[3]: true}) != 4 {
			t.Fatalf("keys are not distinct: %v", k.args)
		}
	})
}

func BenchmarkTag(b *testing.B) {
	for i := range b.N {
		Tag("demo", sale.Share(i%sale.MaxSlots))
	}
}
