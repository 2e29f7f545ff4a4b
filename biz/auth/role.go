package auth

import "slices"

// Role is what an operator may do. Each role may do what those before it in Roles may.
type Role string

// The roles.
const (
	RoleViewer   Role = "viewer"   // look at everything
	RoleOperator Role = "operator" // and steer a sale: open, pause, close, toggles, reshare, reconcile, cancel, dead letters
	RoleAdmin    Role = "admin"    // and decide what is sold: create, load, adjust, slots, path, close-out
)

// Roles lists the roles, the one with the fewest rights first.
var Roles = [...]Role{RoleViewer, RoleOperator, RoleAdmin}

// May tells whether a role is at least the other one. A role that there is not may do nothing.
func (r Role) May(least Role) bool {
	have, want := slices.Index(Roles[:], r), slices.Index(Roles[:], least)
	return have >= 0 && want >= 0 && have >= want
}

// Valid tells whether there is such a role.
func (r Role) Valid() bool { return slices.Contains(Roles[:], r) }
