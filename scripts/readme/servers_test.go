//go:build services && unix

package readme_test

import (
	"context"
	"database/sql"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/go-sql-driver/mysql"
	"github.com/google/uuid"
	amqp "github.com/rabbitmq/amqp091-go"
	"github.com/redis/go-redis/v9"

	"stockade/mq"
)

const cleanTimeout = 20 * time.Second

// An operator brings up a node on real servers, sells, and looks at the books.
func TestRealServers(t *testing.T) {
	r := newReader(t)
	name := "readme_" + uuid.NewString()[:8]
	r.values = map[string]string{
		"STOCKADE_STORE_DSN": ownDatabase(t, name),
		"STOCKADE_MQ_URL":    ownQueues(t, name),

		"STOCKADE_AUTH_PURCHASE_TOKEN_SECRETS": strings.Repeat("s", 32),
		"STOCKADE_AUTH_ADMIN_TOKENS_FILE":      filepath.Join(t.TempDir(), "admin-tokens.yaml"),
	}
	// The page leaves these at their defaults; a test keeps to itself.
	r.set("STOCKADE_SHARD_ADDRESSES", ownKeys(t, name))
	r.set("STOCKADE_SHARD_PREFIX", name)
	r.set("STOCKADE_MQ_PREFIX", name)
	for _, c := range commands(t) {
		if slices.Contains(serverSections, c.section) {
			r.follow(c)
		}
	}
	if r.running == nil {
		t.Fatal("the page starts no node")
	}
	r.running.interrupt(t)
}

func address(t *testing.T, variable string) string {
	t.Helper()
	value := os.Getenv(variable)
	if value == "" {
		t.Fatalf("%s is not set; scripts/services.sh starts the servers and prints it", variable)
	}
	return value
}

// ownDatabase makes a database that goes with the test, and returns its DSN.
func ownDatabase(t *testing.T, name string) string {
	t.Helper()
	dsn, err := mysql.ParseDSN(address(t, "STOCKADE_TEST_MYSQL"))
	if err != nil {
		t.Fatalf("STOCKADE_TEST_MYSQL: %v", err)
	}
	db, err := sql.Open("mysql", dsn.FormatDSN())
	if err != nil {
		t.Fatal(err)
	}
	if _, err := db.Exec("CREATE DATABASE " + name); err != nil {
		t.Fatalf("STOCKADE_TEST_MYSQL: %v", err)
	}
	t.Cleanup(func() {
		if _, err := db.Exec("DROP DATABASE " + name); err != nil {
			t.Error(err)
		}
		_ = db.Close()
	})
	dsn.DBName = name
	return dsn.FormatDSN()
}

// ownQueues returns the broker's URL and removes what has this prefix at the end of the test.
func ownQueues(t *testing.T, prefix string) string {
	t.Helper()
	url := address(t, "STOCKADE_TEST_AMQP")
	t.Cleanup(func() {
		conn, err := amqp.Dial(url)
		if err != nil {
			t.Errorf("STOCKADE_TEST_AMQP: %v", err)
			return
		}
		defer conn.Close()
		ch, err := conn.Channel()
		if err != nil {
			t.Error(err)
			return
		}
		names := mq.NamesFor(prefix)
		for _, queue := range []string{names.Create, names.Dead} {
			if _, err := ch.QueueDelete(queue, false, false, false); err != nil {
				t.Error(err)
			}
		}
		for _, exchange := range []string{names.Orders, names.Dead, names.Events} {
			if err := ch.ExchangeDelete(exchange, false, false); err != nil {
				t.Error(err)
			}
		}
	})
	return url
}

// ownKeys returns the address of Redis and removes the keys with this prefix at the end of the test.
func ownKeys(t *testing.T, prefix string) string {
	t.Helper()
	addr := address(t, "STOCKADE_TEST_REDIS")
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), cleanTimeout)
		defer cancel()
		client := redis.NewClient(&redis.Options{Addr: addr})
		defer client.Close()
		keys := client.Scan(ctx, 0, prefix+":*", 1000).Iterator()
		for keys.Next(ctx) {
			if err := client.Unlink(ctx, keys.Val()).Err(); err != nil {
				t.Error(err)
			}
		}
		if err := keys.Err(); err != nil {
			t.Errorf("STOCKADE_TEST_REDIS: %v", err)
		}
	})
	return addr
}
