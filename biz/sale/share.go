package sale

import "strconv"

// Share is one part of a SKU's stock: slot 0 to Slots−1, or the Reserve.
type Share int

// Reserve is the share that every buyer falls back to.
const Reserve Share = -1

func (s Share) String() string {
	if s == Reserve {
		return "reserve"
	}
	return strconv.Itoa(int(s))
}

// Shares lists the shares of a SKU with that many slots: the slots in order, the reserve last.
func Shares(slots int) []Share {
	all := make([]Share, 0, slots+1)
	for i := range slots {
		all = append(all, Share(i))
	}
	return append(all, Reserve)
}

// Home is the slot of the buyer whose id has this 64-bit hash.
func Home(buyerHash uint64, slots int) Share { return Share(buyerHash % uint64(slots)) }

// TailLayout lays everything that is left into the reserve, where every buyer reaches it. The result is in the order of
// Shares.
func TailLayout(left int64, slots int) []int64 {
	out := make([]int64, slots+1)
	out[slots] = left
	return out
}

// SpreadLayout lays everything that is left evenly over the slots, for when nobody may ask the reserve. The slots from
// first on, counted round and round, take the remainder: few units come to every slot in turn when first grows. The result
// is in the order of Shares.
func SpreadLayout(left int64, slots int, first int64) []int64 {
	out := make([]int64, slots+1)
	for i := range slots {
		at := (first + int64(i)) % int64(slots)
		out[at] = left / int64(slots)
		if int64(i) < left%int64(slots) {
			out[at]++
		}
	}
	return out
}

// Layout lays left units out over slots and the reserve: reservePct percent, rounded up, into the reserve, the rest
// evenly, earlier slots taking the remainder. The result is in the order of Shares and sums to left.
func Layout(left int64, slots, reservePct int) []int64 {
	out := make([]int64, slots+1)
	out[slots] = (left*int64(reservePct) + 99) / 100
	rest := left - out[slots]
	each, more := rest/int64(slots), rest%int64(slots)
	for i := range slots {
		out[i] = each
		if int64(i) < more {
			out[i]++
		}
	}
	return out
}
