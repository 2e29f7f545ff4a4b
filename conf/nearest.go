package conf

import "strings"

// nearest returns the candidate that name was most likely meant to be, or "" when none is near: at most a third of
// its letters may differ, upper case and underscores aside.
func nearest(name string, candidates []string) string {
	best, bound := "", max(1, len(name)/3)+1
	for _, c := range candidates {
		if d := distance(plain(name), plain(c)); d < bound {
			best, bound = c, d
		}
	}
	return best
}

// plain leaves the letters and digits of a name, in lower case: the same for laneQueue, LaneQueue and LANE_QUEUE.
func plain(name string) string {
	return strings.Map(func(r rune) rune {
		if r == '_' || r == '-' || r == '.' {
			return -1
		}
		return r
	}, strings.ToLower(name))
}

// distance counts the letters to insert, delete, replace or swap with a neighbour to turn a into b.
func distance(a, b string) int {
	before, last := make([]int, len(b)+1), make([]int, len(b)+1)
	for j := range last {
		last[j] = j
	}
	for i := 1; i <= len(a); i++ {
		row := make([]int, len(b)+1)
		row[0] = i
		for j := 1; j <= len(b); j++ {
			cost := 1
			if a[i-1] == b[j-1] {
				cost = 0
			}
			row[j] = min(last[j]+1, row[j-1]+1, last[j-1]+cost)
			if i > 1 && j > 1 && a[i-1] == b[j-2] && a[i-2] == b[j-1] {
				row[j] = min(row[j], before[j-2]+1)
			}
		}
		before, last = last, row
	}
	return last[len(b)]
}
