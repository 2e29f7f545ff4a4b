package sale

// Standing is what a node may answer from memory.
type Standing uint8

// The standings of a request against the sold-out flags.
const (
	AskGate      Standing = iota // no valid flag, or this buyer may have won before
	FlaggedOut                   // home and reserve are empty and so little is left elsewhere that the answer is SOLD_OUT
	FlaggedEmpty                 // home and reserve are empty, other shares have enough: RETRY
)
