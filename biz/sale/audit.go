package sale

import "time"

// AuditEntry is one line of the audit log: who did what to what, why, and what came of it.
type AuditEntry struct {
	Seq       int64     `json:"seq"`
	At        time.Time `json:"at"`
	Actor     string    `json:"actor"`          // name of the operator's token; ServiceActor
	Role      string    `json:"role,omitempty"` // of the operator
	Action    string    `json:"action"`         // such as sku.open
	Target    string    `json:"target"`         // such as the SKU
	Detail    string    `json:"detail,omitempty"`
	Reason    string    `json:"reason"`
	Status    int       `json:"status,omitempty"` // of the answer, as in HTTP; 0: the service's own
	RequestID string    `json:"request_id,omitempty"`
}

// ServiceActor is the actor of what the service does by itself.
const ServiceActor = "stockade"

// AuditFilter chooses lines of the audit log; zero fields choose all.
type AuditFilter struct {
	Actor, Action, Target string
	After                 int64 // seq of the last line of the page before: the newest come first
	Limit                 int
}
