package limiter

import (
	"context"
	"log/slog"
	"sync"
	"sync/atomic"

	"github.com/alibaba/sentinel-golang/core/base"
	"github.com/alibaba/sentinel-golang/core/circuitbreaker"
	"github.com/alibaba/sentinel-golang/logging"
)

// Sentinel has one set of listeners and one logger for the whole process, and may be given them only while nobody uses it.
// Both are ours from the start: the listener passes changes on to the breaker whose resource it is, the logger to the log
// that SentinelLogTo named last.
var (
	listening = &registry{}
	said      = &sentinelLog{}
)

func init() {
	_ = logging.ResetGlobalLogger(said) // fails only without a logger
	circuitbreaker.RegisterStateChangeListeners(listening)
}

// SentinelLogTo sends what Sentinel has to say to log: its informative lines at debug level.
func SentinelLogTo(log *slog.Logger) { said.to.Store(log) }

// newChain is the way of an entry through the circuit breakers and nothing else of Sentinel: no statistics, no logs of its
// own, no background work.
func newChain() *base.SlotChain {
	chain := base.NewSlotChain()
	chain.AddRuleCheckSlot(circuitbreaker.DefaultSlot)
	chain.AddStatSlot(circuitbreaker.DefaultMetricStatSlot)
	return chain
}

// registry finds breakers by resource.
type registry struct{ breakers sync.Map }

func (r *registry) add(b *Breaker)    { r.breakers.Store(b.resource, b) }
func (r *registry) remove(b *Breaker) { r.breakers.Delete(b.resource) }

func (r *registry) tell(rule circuitbreaker.Rule, to circuitbreaker.State, value any) {
	if b, ok := r.breakers.Load(rule.Resource); ok {
		b.(*Breaker).changed(rule, to, value)
	}
}

// OnTransformToClosed is called by Sentinel.
func (r *registry) OnTransformToClosed(_ circuitbreaker.State, rule circuitbreaker.Rule) {
	r.tell(rule, circuitbreaker.Closed, nil)
}

// OnTransformToOpen is called by Sentinel.
func (r *registry) OnTransformToOpen(_ circuitbreaker.State, rule circuitbreaker.Rule, value any) {
	r.tell(rule, circuitbreaker.Open, value)
}

// OnTransformToHalfOpen is called by Sentinel.
func (r *registry) OnTransformToHalfOpen(_ circuitbreaker.State, rule circuitbreaker.Rule) {
	r.tell(rule, circuitbreaker.HalfOpen, nil)
}

// sentinelLog is the logger that Sentinel knows.
type sentinelLog struct{ to atomic.Pointer[slog.Logger] }

func (s *sentinelLog) log(level slog.Level, msg string, args ...any) {
	if log := s.to.Load(); log != nil {
		log.Log(context.Background(), level, "sentinel: "+msg, args...)
	}
}

// Debug, Info, Warn and Error are called by Sentinel. It announces every rule it loads at Info; we do that ourselves.
func (s *sentinelLog) Debug(msg string, args ...any) { s.log(slog.LevelDebug, msg, args...) }

// Info is logged at debug level.
func (s *sentinelLog) Info(msg string, args ...any) { s.log(slog.LevelDebug, msg, args...) }

// Warn tells of rules that are ignored.
func (s *sentinelLog) Warn(msg string, args ...any) { s.log(slog.LevelWarn, msg, args...) }

func (s *sentinelLog) Error(err error, msg string, args ...any) {
	s.log(slog.LevelError, msg, append(args, "error", err)...)
}

func (s *sentinelLog) enabled(level slog.Level) bool {
	log := s.to.Load()
	return log != nil && log.Enabled(context.Background(), level)
}

// DebugEnabled and its siblings tell whether a line would be written.
func (s *sentinelLog) DebugEnabled() bool { return s.enabled(slog.LevelDebug) }

// InfoEnabled is that of debug level.
func (s *sentinelLog) InfoEnabled() bool { return s.enabled(slog.LevelDebug) }

// WarnEnabled tells whether warnings are written.
func (s *sentinelLog) WarnEnabled() bool { return s.enabled(slog.LevelWarn) }

// ErrorEnabled tells whether errors are written.
func (s *sentinelLog) ErrorEnabled() bool { return s.enabled(slog.LevelError) }
