package databases

import (
	"context"
	"database/sql"
	"errors"
	"os"
	"os/exec"
	"os/user"
	"path/filepath"
	"strconv"
	"syscall"
	"testing"
	"time"

	_ "github.com/go-sql-driver/mysql"
	_ "github.com/lib/pq"
	_ "modernc.org/sqlite"

	"github.com/sidekeeper/sidekeeper/clients/go/sidekeeper"
	"github.com/sidekeeper/sidekeeper/clients/go/sidekeeper/fence"
)

// A server is a database with connections that wait briefly for what another transaction has locked.
type server struct {
	dialect fence.Dialect
	driver  string
	source  string
}

var servers = map[string]func(t *testing.T) server{"PostgreSQL": postgreSQL, "MariaDB": mariaDB, "SQLite": sqLite}

func postgreSQL(t *testing.T) server {
	folder := folderOfServer(t)
	run(t, program(t, "initdb"), "--pgdata", folder+"/data", "--username=test", "--auth=trust", "--no-sync", "--locale=C")
	started := server{fence.PostgreSQL, "postgres", "host=" + folder + " user=test dbname=postgres sslmode=disable options='-c lock_timeout=100'"}
	started.start(t, program(t, "postgres"), "-D", folder+"/data", "-k", folder, "-c", "listen_addresses=")
	return started
}

func mariaDB(t *testing.T) server {
	folder := folderOfServer(t)
	run(t, program(t, "mariadb-install-db"), "--no-defaults", "--datadir="+folder+"/data",
		"--auth-root-authentication-method=normal", "--skip-test-db")
	started := server{fence.MySQL, "mysql", "root@unix(" + folder + "/s.sock)/mysql"}
	started.start(t, program(t, "mariadbd"), "--no-defaults", "--datadir="+folder+"/data", "--socket="+folder+"/s.sock",
		"--skip-networking", "--pid-file="+folder+"/pid", "--innodb-lock-wait-timeout=1", "--innodb-buffer-pool-size=8M")
	return started
}

func sqLite(t *testing.T) server {
	return server{fence.SQLite, "sqlite", "file:" + filepath.Join(t.TempDir(), "db") + "?_pragma=busy_timeout(100)"}
}

// folderOfServer is short, since the path of a Unix socket is, and belongs to whom the servers run as.
func folderOfServer(t *testing.T) string {
	t.Helper()
	folder, err := os.MkdirTemp("/tmp", "sk")
	must(t, err)
	t.Cleanup(func() { os.RemoveAll(folder) })
	if owner := nobody(t); owner != nil {
		must(t, os.Chown(folder, int(owner.Uid), int(owner.Gid)))
	}
	return folder
}

// nobody is whom servers run as that do not run as root, if this is root.
func nobody(t *testing.T) *syscall.Credential {
	t.Helper()
	if os.Getuid() != 0 {
		return nil
	}
	found, err := user.Lookup("nobody")
	must(t, err)
	uid, err := strconv.ParseUint(found.Uid, 10, 32)
	must(t, err)
	gid, err := strconv.ParseUint(found.Gid, 10, 32)
	must(t, err)
	return &syscall.Credential{Uid: uint32(uid), Gid: uint32(gid)}
}

func program(t *testing.T, name string) string {
	t.Helper()
	places, err := filepath.Glob("/usr/lib/postgresql/*/bin/" + name)
	must(t, err)
	for _, place := range append(places, "/usr/sbin/"+name, name) {
		if found, err := exec.LookPath(place); err == nil {
			return found
		}
	}
	t.Fatalf("there is no %s: see tools/need", name)
	return ""
}

func command(t *testing.T, name string, arguments ...string) *exec.Cmd {
	t.Helper()
	command := exec.Command(name, arguments...)
	command.Dir = "/tmp"
	command.SysProcAttr = &syscall.SysProcAttr{Credential: nobody(t), Pdeathsig: syscall.SIGKILL}
	return command
}

func run(t *testing.T, name string, arguments ...string) {
	t.Helper()
	if output, err := command(t, name, arguments...).CombinedOutput(); err != nil {
		t.Fatalf("%s: %v: %s", name, err, output)
	}
}

// start returns when the server answers.
func (s server) start(t *testing.T, name string, arguments ...string) {
	t.Helper()
	started := command(t, name, arguments...)
	must(t, started.Start())
	t.Cleanup(func() {
		_ = started.Process.Signal(syscall.SIGTERM)
		_ = started.Wait()
	})
	database := s.open(t)
	for began := time.Now(); database.Ping() != nil; <-time.After(20 * time.Millisecond) {
		if time.Since(began) > time.Minute {
			t.Fatalf("%s does not answer: %v", name, database.Ping())
		}
	}
}

func (s server) open(t *testing.T) *sql.DB {
	t.Helper()
	database, err := sql.Open(s.driver, s.source)
	must(t, err)
	t.Cleanup(func() { database.Close() })
	return database
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func orders(token int64) sidekeeper.Ticket {
	return sidekeeper.Ticket{Lock: "orders", FencingToken: token}
}

// write writes a number in the name of a ticket, as a service does.
func write(ctx context.Context, database *sql.DB, dialect fence.Dialect, ticket sidekeeper.Ticket, number string) error {
	transaction, err := database.BeginTx(ctx, nil)
	if err != nil {
		return err
	}
	defer transaction.Rollback()
	if err := fence.Enter(ctx, transaction, dialect, ticket); err != nil {
		return err
	}
	if _, err := transaction.ExecContext(ctx, "UPDATE stock SET number = "+number); err != nil {
		return err
	}
	return transaction.Commit()
}

func TestALaterHoldersWriteIsTheLast(t *testing.T) {
	for name, start := range servers {
		t.Run(name, func(t *testing.T) {
			s := start(t)
			database := s.open(t)
			for _, statement := range []string{
				s.dialect.Create(), s.dialect.Create(), "CREATE TABLE stock (number INTEGER NOT NULL)", "INSERT INTO stock VALUES (10)",
			} {
				_, err := database.Exec(statement)
				must(t, err)
			}
			put := func(ticket sidekeeper.Ticket, number string) error {
				return write(t.Context(), database, s.dialect, ticket, number)
			}
			must(t, put(orders(5), "9"))
			must(t, put(orders(7), "4"))
			must(t, put(orders(7), "3"))
			must(t, put(sidekeeper.Ticket{Lock: "Orders", FencingToken: 1}, "2"))
			var refusal *fence.Refusal
			if err := put(orders(5), "8"); !errors.As(err, &refusal) || refusal.Reason != fence.Stale || refusal.Largest != 7 {
				t.Errorf("the late write: %v", err)
			}
			waits(t, s, database)
			snapshot(t, s, database)
			store := fence.SQLStore{Database: database, Dialect: s.dialect}
			for _, of := range []struct{ token, largest int64 }{{1, 9}, {11, 11}, {10, 11}} {
				if largest, err := store.Raise(t.Context(), "orders", of.token); err != nil || largest != of.largest {
					t.Errorf("the mark after %d is %d, %v", of.token, largest, err)
				}
			}
			var number int
			must(t, database.QueryRow("SELECT number FROM stock").Scan(&number))
			if number != 1 {
				t.Errorf("the number is %d", number)
			}
		})
	}
}

// waits sees that no other holder's transaction goes on while one is under way.
func waits(t *testing.T, s server, database *sql.DB) {
	t.Helper()
	transaction, err := database.BeginTx(t.Context(), nil)
	must(t, err)
	must(t, fence.Enter(t.Context(), transaction, s.dialect, orders(7)))
	var refusal *fence.Refusal
	if err := write(t.Context(), database, s.dialect, orders(9), "5"); err == nil || errors.As(err, &refusal) {
		t.Errorf("while another transaction is under way: %v", err)
	}
	must(t, transaction.Rollback())
	must(t, write(t.Context(), database, s.dialect, orders(8), "1"))
}

// snapshot sees that a transaction whose snapshot is older than the mark does not go by it.
func snapshot(t *testing.T, s server, database *sql.DB) {
	t.Helper()
	if s.dialect == fence.SQLite { // has one writer, which no other has begun before
		_, err := fence.SQLStore{Database: database, Dialect: s.dialect}.Raise(t.Context(), "orders", 9)
		must(t, err)
		return
	}
	transaction, err := database.BeginTx(t.Context(), &sql.TxOptions{Isolation: sql.LevelRepeatableRead})
	must(t, err)
	defer transaction.Rollback()
	var number int
	must(t, transaction.QueryRow("SELECT number FROM stock").Scan(&number))
	_, err = fence.SQLStore{Database: database, Dialect: s.dialect}.Raise(t.Context(), "orders", 9)
	must(t, err)
	if err := fence.Enter(t.Context(), transaction, s.dialect, orders(8)); err == nil {
		t.Error("a token passes that is smaller than a mark which its snapshot does not have")
	}
}
