//go:build race

package router

// poolSlack is how many more allocations the race detector may cause: it makes sync.Pool forget at random.
const poolSlack = 4
