package handler

import (
	"context"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/cloudwego/hertz/pkg/app"

	"stockade/biz/sale"
)

// ReasonHeader says why an operator changes something.
const ReasonHeader = "X-Reason"

const (
	maxReason      = 1024 // bytes
	reasonForm     = "must be 1 to 1024 bytes of printable UTF-8"
	maxAuditFilter = 255  // bytes of a filter's text
	maxDetail      = 4096 // bytes of a body in the audit log

	auditKey = "stockade.audit"
)

// AuditLog lists who changed what.
type AuditLog interface {
	List(ctx context.Context, f sale.AuditFilter) ([]sale.AuditEntry, error)
}

// AuditPage is the answer of GET /admin/v1/audit.
type AuditPage struct {
	Entries []sale.AuditEntry `json:"entries"`
	Next    string            `json:"next,omitempty"` // cursor of the next page; missing on the last one
}

// ListAudit serves GET /admin/v1/audit, the newest lines first.
func (a *API) ListAudit(ctx context.Context, c *app.RequestContext) {
	filter, problem := auditFilter(c)
	if problem != nil {
		problem.Write(c)
		return
	}
	entries, err := a.AuditLog.List(ctx, filter)
	if err != nil {
		a.fail(c, err)
		return
	}
	page := AuditPage{Entries: entries}
	if page.Entries == nil {
		page.Entries = []sale.AuditEntry{}
	}
	if len(entries) == filter.Limit {
		page.Next = strconv.FormatInt(entries[len(entries)-1].Seq, 10)
	}
	a.json(c, 200, page)
}

func auditFilter(c *app.RequestContext) (f sale.AuditFilter, problem *Problem) {
	if f.Limit, problem = pageLimit(c); problem != nil {
		return f, problem
	}
	for name, into := range map[string]*string{"actor": &f.Actor, "action": &f.Action, "target": &f.Target} {
		*into = strings.Clone(c.Query(name))
		if len(*into) > maxAuditFilter {
			return f, badInput(BadRequest, name, "must be at most "+strconv.Itoa(maxAuditFilter)+" bytes")
		}
	}
	if raw, given := c.GetQuery("after"); given {
		var err error
		if f.After, err = strconv.ParseInt(raw, 10, 64); err != nil || f.After < 1 {
			return f, badInput(BadRequest, "after", "must be the next of an earlier page")
		}
	}
	return f, nil
}

// Reason returns the header X-Reason, or the problem that names it.
func Reason(c *app.RequestContext) (string, *Problem) {
	values := c.Request.Header.PeekAll(ReasonHeader)
	if len(values) != 1 {
		return "", badInput(InvalidField, ReasonHeader, "must be given once: why this is done, for those who look later")
	}
	reason := string(values[0])
	if !validReason(reason) {
		return "", badInput(InvalidField, ReasonHeader, reasonForm)
	}
	return reason, nil
}

// validReason tells whether a text can be the reason of a change, in a header or in a body.
func validReason(s string) bool {
	return len(s) <= maxReason && strings.TrimSpace(s) != "" && utf8.ValidString(s) && !strings.ContainsFunc(s, isControl)
}

func isControl(r rune) bool { return r != ' ' && !unicode.IsPrint(r) }

// Audited is what the audit log is to say of a request. The router puts it there, handlers fill in what they know better.
type Audited struct {
	Target string // what is changed; the path parameter as it was sent, unless a handler knows better
	Detail string // the request's body
	Reason string
}

// SetAudited asks the handlers of this request to fill in what they know.
func SetAudited(c *app.RequestContext, a *Audited) { c.Set(auditKey, a) }

// audited is never nil: what is not wanted goes nowhere.
func audited(c *app.RequestContext) *Audited {
	if v, ok := c.Get(auditKey); ok {
		return v.(*Audited)
	}
	return &Audited{}
}

// readNoted is read for operators' requests: the audit log keeps their bodies.
func (d *decoder) readNoted(c *app.RequestContext) *Problem {
	problem := d.read(c)
	text := d.raw[:min(len(d.raw), maxDetail)]
	audited(c).Detail = strings.ToValidUTF8(string(text), "\uFFFD")
	return problem
}
