package shard

import (
	"context"
	"errors"
	"slices"
	"strings"

	"github.com/redis/go-redis/v9"
)

// intsCmd runs a script that returns integers. Left to itself, the client repeats a command whose reply was lost, and
// then reports the second run's answer.
type intsCmd struct{ *redis.IntSliceCmd }

// NoRetry keeps the client from running the script a second time. Redirections are still followed.
func (intsCmd) NoRetry() bool { return true }

// stringsCmd runs a script that returns strings.
type stringsCmd struct{ *redis.StringSliceCmd }

// NoRetry is as for intsCmd.
func (stringsCmd) NoRetry() bool { return true }

// payload is a packed argument. It notes when the client begins to write it: a command that failed before was never
// sent, after any other failure it may have run.
type payload struct {
	data    []byte
	written bool
}

// MarshalBinary is called by the client when it writes the command.
func (p *payload) MarshalBinary() ([]byte, error) {
	p.written = true
	return p.data, nil
}

// evalArgs are the arguments that call a script by its hash, or by its text when Redis does not know it.
func evalArgs(s *script, byText bool, keys []any, args []any) []any {
	all := make([]any, 0, 3+len(keys)+len(args))
	if byText {
		all = append(all, "eval", s.src)
	} else {
		all = append(all, "evalsha", s.sha)
	}
	all = append(all, len(keys))
	return append(append(all, keys...), args...)
}

// isNoScript tells that Redis does not know a script, so that it did not run.
func isNoScript(err error) bool { return err != nil && strings.HasPrefix(err.Error(), "NOSCRIPT ") }

// isMoved tells that another node serves the keys, so that the script did not run.
func isMoved(err error) bool {
	return err != nil && (strings.HasPrefix(err.Error(), "MOVED ") || strings.HasPrefix(err.Error(), "ASK "))
}

// refusals begin the errors with which Redis turns a command away, or a script before its first write.
var refusals = [...]string{
	"NOSCRIPT ", "MOVED ", "ASK ", "TRYAGAIN ", "CLUSTERDOWN ", "LOADING ", "MASTERDOWN ", "READONLY ", "NOAUTH ",
}

// isRefused tells that a script changed nothing.
func isRefused(err error) bool {
	var reply redis.Error
	return errors.As(err, &reply) && slices.ContainsFunc(refusals[:], func(prefix string) bool {
		return strings.HasPrefix(reply.Error(), prefix)
	})
}

// runInts runs a script once, alone, wherever its keys are.
func (g *Gate) runInts(ctx context.Context, s *script, k *keys, args ...any) ([]int64, error) {
	return runInts(ctx, g.client, s, k.args[:], args)
}

func runInts(ctx context.Context, client redis.UniversalClient, s *script, keys, args []any) ([]int64, error) {
	var err error
	for _, byText := range [...]bool{false, true} {
		cmd := intsCmd{redis.NewIntSliceCmd(ctx, evalArgs(s, byText, keys, args)...)}
		err = client.Process(ctx, cmd)
		if !isNoScript(err) {
			return cmd.Val(), err
		}
	}
	return nil, err
}

// runStrings is runInts for a script that returns strings.
func (g *Gate) runStrings(ctx context.Context, s *script, keys []any, args ...any) ([]string, error) {
	var err error
	for _, byText := range [...]bool{false, true} {
		cmd := stringsCmd{redis.NewStringSliceCmd(ctx, evalArgs(s, byText, keys, args)...)}
		err = g.client.Process(ctx, cmd)
		if !isNoScript(err) {
			return cmd.Val(), err
		}
	}
	return nil, err
}

// pipelined bounds the commands of one pipeline of runAll: all of them have to be answered within the client's timeout of
// one read.
const pipelined = 8

// runAll runs commands that call one script once each, a pipeline after the other; build makes the i-th of them, by the
// script's text where a master did not know its hash. Each command has its own error.
func runAll[C redis.Cmder](ctx context.Context, client redis.UniversalClient, n int, build func(i int, byText bool) C) []C {
	cmds := make([]C, n)
	wanted := make([]int, n)
	for i := range wanted {
		wanted[i] = i
	}
	for _, byText := range [...]bool{false, true} {
		for chunk := range slices.Chunk(wanted, pipelined) {
			pipe := client.Pipeline()
			for _, i := range chunk {
				cmds[i] = build(i, byText)
				_ = pipe.Process(ctx, cmds[i]) // only queues
			}
			_, _ = pipe.Exec(ctx) // each command has its own error
		}
		wanted = slices.DeleteFunc(wanted, func(i int) bool { return !isNoScript(cmds[i].Err()) })
		if len(wanted) == 0 {
			break
		}
	}
	return cmds
}
