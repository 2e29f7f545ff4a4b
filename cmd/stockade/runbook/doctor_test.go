//go:build services

package runbook_test

import (
	"errors"
	"os/exec"
	"strings"
	"testing"

	"stockade/biz/sale"
	"stockade/biz/service"
)

// exitOf runs the doctor on the command line and tells its status and what it printed.
func (s *site) exitOf(args ...string) (int, string) {
	s.t.Helper()
	cmd := exec.Command(binary, append([]string{"doctor"}, args...)...)
	cmd.Env = s.environment()
	out, err := cmd.CombinedOutput()
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) {
		s.t.Fatal(err)
	}
	return cmd.ProcessState.ExitCode(), string(out)
}

// finds waits until the doctor has a finding of that level, whose text has a part.
func (s *site) finds(check sale.Check, level sale.Level, part string) {
	s.t.Helper()
	var last service.Examination
	defer func() {
		if s.t.Failed() {
			s.t.Logf("%s %s with %q was looked for in %+v", check, level, part, last)
		}
	}()
	s.poll(string(check)+" is "+string(level), func() bool {
		last = s.examine()
		for _, f := range last.Findings {
			if f.Check == check && f.Level == level && strings.Contains(f.Seen, part) {
				return true
			}
		}
		return false
	})
}

// What is well on real servers is called well; what somebody broke is found, and hides nothing else.
func TestTheDoctorOnRealServers(t *testing.T) {
	s := newSite(t)
	s.poll("the replica is connected", func() bool {
		return strings.Contains(s.redis.Info(t.Context(), "replication").Val(), "connected_slaves:1")
	})
	if e := s.examine(); e.Level != sale.LevelOK || len(e.Findings) < 25 {
		t.Errorf("nothing is wrong, and the doctor says %+v", e)
	}
	if code, printed := s.exitOf(demo); code != 0 {
		t.Errorf("nothing is wrong: status %d\n%s", code, printed)
	}

	s.must(s.redis.ConfigSet(t.Context(), "maxmemory-policy", "allkeys-lru").Err())
	s.finds(sale.CheckRedisEviction, sale.LevelFail, "allkeys-lru")
	if code, printed := s.exitOf(demo); code != 2 || !strings.Contains(printed, "check-redis.md") {
		t.Errorf("Redis evicts: status %d\n%s", code, printed)
	}
	s.must(s.redis.ConfigSet(t.Context(), "maxmemory-policy", "noeviction").Err())

	s.must(s.redis.ScriptFlush(t.Context()).Err())
	s.finds(sale.CheckRedisScripts, sale.LevelWarn, "0 of ")
	if code, printed := s.exitOf(demo); code != 1 {
		t.Errorf("scripts are missing: status %d\n%s", code, printed)
	}

	s.cli("toggle", "set", sale.ToggleReshare, sale.WorkPauses, "--reason", "nobody is to mend it")
	s.finds(sale.CheckToggles, sale.LevelWarn, "nobody is to mend it")
	s.loseShare()
	s.finds(sale.CheckShareStock, sale.LevelFail, "share 0 is gone")
	s.cli("reshare", demo, "--full")
	s.finds(sale.CheckShareStock, sale.LevelOK, "total 10000")
	s.drift()
	s.finds(sale.CheckShareStock, sale.LevelFail, "-7 units")

	s.deadLetter()
	s.finds(sale.CheckDeadLetters, sale.LevelWarn, "1 dead letters")

	s.server.Kill()
	s.finds(sale.CheckRedisPing, sale.LevelFail, "no answer")
	s.finds(sale.CheckMySQLDurability, sale.LevelOK, "innodb_flush_log_at_trx_commit 1")
	s.finds(sale.CheckRabbitConsumers, sale.LevelOK, "consumers")
	s.finds(sale.CheckAlertRules, sale.LevelOK, "1 rules")
}
