package sale

import "time"

// Toggle is an operator's switch as it is stored.
type Toggle struct {
	Name      string    `json:"name"`
	Scope     string    `json:"scope,omitempty"` // a SKU; empty: all
	Value     string    `json:"value"`
	Reason    string    `json:"reason"`
	Actor     string    `json:"actor"`
	Until     time.Time `json:"until,omitzero"` // zero: until it is changed
	ChangedAt time.Time `json:"changed_at,omitzero"`
}

// Toggles by name, with their values; the first value is the default.
const (
	ToggleDurability = "durability" // outbox: ACCEPTED after the commit; journal: after the admission
	ToggleReshare    = "reshare"    // run, pause: the automatic reshares
	ToggleExpiry     = "expiry"     // run, pause: closing orders whose payment window ended
	ToggleRelay      = "relay"      // run, pause: publishing
	ToggleConsumer   = "consumer"   // run, pause: writing orders

	DurabilityOutbox  = "outbox"
	DurabilityJournal = "journal"
	WorkRuns          = "run"
	WorkPauses        = "pause"
)

// ToggleValues lists what each toggle may be; the first value is the default.
var ToggleValues = map[string][]string{
	ToggleDurability: {DurabilityOutbox, DurabilityJournal},
	ToggleReshare:    {WorkRuns, WorkPauses},
	ToggleExpiry:     {WorkRuns, WorkPauses},
	ToggleRelay:      {WorkRuns, WorkPauses},
	ToggleConsumer:   {WorkRuns, WorkPauses},
}
