package drill_test

import (
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"stockade/biz/sale"
)

// pointOwners names the package that makes each step, and so passes each point.
var pointOwners = map[sale.Point]string{
	sale.PurchaseAdmitted: "biz/service", sale.PromiseWritten: "store", sale.PromiseCommitted: "biz/service",
	sale.PromiseAnswered: "biz/service", sale.RelayPacked: "mq", sale.RelayConfirmed: "mq", sale.SweepClaimed: "mq",
	sale.NoticePublished: "mq", sale.ConsumerReceived: "mq", sale.OrdersWritten: "store", sale.ConsumerWritten: "mq",
	sale.RetryPublished: "mq", sale.DeadLetterRecorded: "biz/service", sale.DeadLetterCompensated: "biz/service",
	sale.ExpiryDelivered: "mq", sale.SettlementWritten: "store", sale.SettlementCommitted: "biz/service",
	sale.RestockCredited: "biz/service", sale.JournalDecided: "biz/service", sale.JournalCarried: "biz/service",
	sale.ReshareRaised: "biz/service", sale.ReshareSealed: "biz/service", sale.ReshareLaid: "biz/service",
	sale.ReshareOpened: "biz/service", sale.ReshareFinished: "biz/service", sale.CloseoutSealed: "biz/service",
	sale.CloseoutReported: "biz/service", sale.CloseoutDropped: "biz/service",
}

var (
	pointLine = regexp.MustCompile(`(\w+)\s+Point = "([a-z.]+)"`)
	pointCall = regexp.MustCompile(`\.At\(.*\bsale\.(\w+)\)`)
)

// A point that nobody passes, or somebody else, would be walked past.
func TestEveryPointIsPassedByItsOwner(t *testing.T) {
	root := filepath.Join("..", "..", "..")
	named := map[string]sale.Point{}
	text, err := os.ReadFile(filepath.Join(root, "biz", "sale", "faults.go"))
	if err != nil {
		t.Fatal(err)
	}
	for _, m := range pointLine.FindAllStringSubmatch(string(text), -1) {
		named[m[1]] = sale.Point(m[2])
	}
	passed := map[sale.Point][]string{}
	for _, dir := range []string{"biz", "cache", "cmd", "limiter", "mq", "shard", "store"} {
		err := filepath.WalkDir(filepath.Join(root, dir), func(path string, d fs.DirEntry, err error) error {
			if err != nil || d.IsDir() || !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go") {
				return err
			}
			text, err := os.ReadFile(path)
			pkg, _ := filepath.Rel(root, filepath.Dir(path))
			for _, m := range pointCall.FindAllStringSubmatch(string(text), -1) {
				passed[named[m[1]]] = append(passed[named[m[1]]], filepath.ToSlash(pkg))
			}
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	if len(named) != len(sale.Points) || len(pointOwners) != len(sale.Points) {
		t.Errorf("%d points are declared, %d have owners, %d are listed", len(named), len(pointOwners), len(sale.Points))
	}
	for _, p := range sale.Points {
		if by := slices.Compact(slices.Sorted(slices.Values(passed[p]))); len(by) != 1 || by[0] != pointOwners[p] {
			t.Errorf("%s is passed by %v, want %s", p, by, pointOwners[p])
		}
	}
}
