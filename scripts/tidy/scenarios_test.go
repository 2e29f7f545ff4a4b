package tidy

import (
	"go/ast"
	"regexp"
	"strings"
	"testing"
)

// scenarios are faults that shops of this kind have had, with the tests that keep them from happening here: functions, or
// the names of cases that an adapter's suite runs.
var scenarios = []struct {
	fault string
	tests []string
}{
	{"two buyers get the last unit; a counter differs from its rows", []string{"TestScenario01LastUnit", "TestScenario01CounterEqualsRows", "LastUnitsRace"}},
	{"a counter runs below zero, and what comes back cannot be sold", []string{"TestScenario02FailedTriesLeaveNoDebt"}},
	{"many clicks of one buyer take more than one unit", []string{"TestScenario03OneKeyIsOneOrder", "TestScenario03ManyKeysKeepTheLimit", "TestATokenUsedManyTimesIsOneOrder"}},
	{"something is taken before the sale opens; the limit fails under load", []string{"TestScenario04NothingIsTakenOffSale", "TestScenario04OpeningTime", "TestScenario04LimitUnderConcurrency"}},
	{"one unit too many, or more than there is, is sold at once", []string{"TestScenario05NeverOneMore", "TestScenario05ScatteredRest"}},
	{"a hash picks no slot; units go back to another slot than they came from", []string{"TestScenario06EveryHashHasItsSlot", "TestCreditGoesWhereTheOrderWasLaid"}},
	{"a refused buyer leaves a mark that refuses others", []string{"TestScenario07RefusalsLeaveNoMark"}},
	{"a payment lands after its units were sold again", []string{"TestDrill08PaymentsRaceExpiry", "TestPaymentsRaceExpiryReal", "TestSettlement"}},
	{"a buyer's own hold is in the way of a retry; stock falls twice for one order", []string{"TestModelReal", "SettleRepeats", "SameOrderRace"}},
	{"units come back before a transaction that fails, and again on retry", []string{"TestFaultsBetweenCommitAndCredit", "TestMySQLSettlementLosesItsConnection", "TestSettlementModel"}},
	{"a sweep ends at the first item that it cannot take, or lists all keys", []string{"TestExpiryStepsOverStuckOrders", "ExpiryInBulk", "TestNothingListsAllKeys"}},
	{"more comes back than was taken; a compensation goes elsewhere", []string{"TestBuryCompensates", "TestCreditsRaceReshares", "Restocks"}},
	{"the process dies between the take and the message", []string{"TestScenario13CrashBetweenDeductAndPublish", "TestScenario13KilledBetweenTwoSteps", "TestEveryCrashPoint"}},
	{"a confirm is late although the message was handled", []string{"TestLateConfirmEndsTheSession", "ConfirmsLost", "DeliveredTwice"}},
	{"a confirm never comes because the connection was cut", []string{"TestNetworkCutMidConfirm", "TestNetworkHalfOpen", "TestDrill05RabbitIsUnwell"}},
	{"one slow publish blocks all others; a poison message goes round for hours", []string{"PublishStuck", "RetryTiersInTurn", "TestDrill06PoisonEvent"}},
	{"two relays read the same rows", []string{"ClaimNewIsExclusive", "TestDrill06MessagesComeTwice"}},
	{"sold out is forgotten at once, or stays after units came back", []string{"TestScenario18SoldOutIsKnownAndForgotten"}},
	{"the repetition after a timeout counts twice", []string{"TestScenario19LateReplyDeductsOnce", "TestScenario19LateRepliesInACrowd", "TestDrill07RepliesGetLost"}},
	{"an old snapshot of Redis overwrites the truth", []string{"TestDrill02RedisForgets", "TestRestore", "TestReconcileFindsAndMendsExactlyWhatIsWrong"}},
	{"an invented address buys a fresh bucket", []string{"TestInventedNamesBuyNoFreshBucket", "TestScalperWithManyAddresses"}},
}

// suiteCase finds the names of cases in the suites that adapters share, {"Name", function}.
var suiteCase = regexp.MustCompile(`\{"([A-Z]\w+)", \w+\}`)

func TestEveryScenarioHasItsTests(t *testing.T) {
	there := map[string]bool{}
	for _, f := range goFiles(t) {
		for _, decl := range f.ast.Decls {
			if fn, ok := decl.(*ast.FuncDecl); ok && fn.Recv == nil && f.isTest() && strings.HasPrefix(fn.Name.Name, "Test") {
				there[fn.Name.Name] = true
			}
		}
		if strings.HasSuffix(f.dir, "test") { // storetest, mqtest, shardtest
			for _, found := range suiteCase.FindAllStringSubmatch(f.text, -1) {
				there[found[1]] = true
			}
		}
	}
	for i, s := range scenarios {
		for _, name := range s.tests {
			if !there[name] {
				t.Errorf("scenario %d, %s: there is no test %s", i+1, s.fault, name)
			}
		}
	}
}

// allKeys finds commands that make Redis look at everything it holds.
var allKeys = regexp.MustCompile(`'(?i:KEYS|SCAN)'|\.(Keys|Scan|ScanType|FlushDB|FlushAll)\(ctx`)

func TestNothingListsAllKeys(t *testing.T) {
	walk(t, func(name string) {
		if !strings.HasPrefix(name, "shard/") || strings.HasSuffix(name, "_test.go") || strings.HasPrefix(name, "shard/shardtest/") {
			return
		}
		if found := allKeys.FindString(read(t, name)); found != "" {
			t.Errorf("%s: %s looks at all keys of a server", name, found)
		}
	})
}
