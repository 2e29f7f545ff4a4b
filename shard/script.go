package shard

import (
	"context"
	"crypto/sha1"
	"embed"
	"encoding/hex"
	"fmt"

	"github.com/redis/go-redis/v9"
)

//go:embed lua/*.lua
var sources embed.FS

// script is one Lua script, by its file.
type script struct {
	name string
	src  string
	sha  string
}

// newScript joins the files into one script named after the last of them.
func newScript(files ...string) *script {
	s := &script{name: files[len(files)-1]}
	for _, f := range files {
		text, err := sources.ReadFile("lua/" + f + ".lua")
		if err != nil {
			panic(err) // the file is compiled in: only a wrong name here can do this
		}
		s.src += string(text)
	}
	sum := sha1.Sum([]byte(s.src))
	s.sha = hex.EncodeToString(sum[:])
	return s
}

// The scripts, never changed after start-up.
var (
	admitScript   = newScript("admit")
	settleScript  = newScript("common", "settle")
	tellScript    = newScript("common", "tell")
	creditScript  = newScript("common", "credit")
	sealScript    = newScript("seal")
	wipeScript    = newScript("wipe")
	fillScript    = newScript("fill")
	openScript    = newScript("open")
	dropScript    = newScript("drop")
	overdueScript = newScript("overdue")
	allScripts    = []*script{
		admitScript, settleScript, tellScript, creditScript, sealScript, wipeScript, fillScript, openScript,
		dropScript, overdueScript,
	}
)

// Statuses that begin the replies of scripts.
const (
	replyDone  = 0
	replyStale = 6 // another epoch, or sealed
	replyGone  = 7 // keys missing
)

// load puts the scripts on every master. A master that does not get them answers NOSCRIPT once and gets them then.
func (g *Gate) load(ctx context.Context) error {
	return g.eachMaster(ctx, func(ctx context.Context, master *redis.Client) error {
		_, err := master.Pipelined(ctx, func(p redis.Pipeliner) error {
			for _, s := range allScripts {
				p.ScriptLoad(ctx, s.src)
			}
			return nil
		})
		if err != nil {
			return fmt.Errorf("load scripts: %w", err)
		}
		return nil
	})
}

// eachMaster calls fn with every master, at the same time in a cluster, and returns the first error.
func (g *Gate) eachMaster(ctx context.Context, fn func(context.Context, *redis.Client) error) error {
	switch c := g.client.(type) {
	case *redis.ClusterClient:
		return c.ForEachMaster(ctx, fn)
	case *redis.Client:
		return fn(ctx, c)
	}
	return fmt.Errorf("client %T has no masters", g.client)
}
