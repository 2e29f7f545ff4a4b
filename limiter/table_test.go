package limiter

import (
	"testing"
	"unsafe"
)

func TestMillionBuyersFitIntoMemory(t *testing.T) {
	if size := unsafe.Sizeof(group{}); size != 256 {
		t.Errorf("a group takes %d bytes, want 4 cache lines", size)
	}
	table := newTable(1 << 20)
	if bytes := len(table.groups) * int(unsafe.Sizeof(group{})); bytes > 36<<20 {
		t.Errorf("a table for %d keys takes %d bytes", 1<<20, bytes)
	}
}

// At the number of keys it is built for, the table refuses hardly anyone a burst that is theirs.
func TestFullTableHardlyEvicts(t *testing.T) {
	const keys, burst, seed = 1 << 16, 5, 0x9e3779b97f4a7c15
	table, quota := newTable(keys), newQuota(5, burst)
	refused := 0
	for range burst {
		key := uint64(0)
		for range keys {
			key += seed // a Weyl sequence, scrambled, stands for a hash
			if !table.take(&quota, scramble(key), 0).OK {
				refused++
			}
		}
	}
	if refused > keys*burst/50 {
		t.Errorf("%d of %d requests refused for want of room", refused, keys*burst)
	}
}

func scramble(x uint64) uint64 {
	x = (x ^ x>>30) * 0xbf58476d1ce4e5b9
	x = (x ^ x>>27) * 0x94d049bb133111eb
	return x ^ x>>31
}
