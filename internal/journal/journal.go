// Package journal keeps what a sidecar needs to come back to its leases when it is started again: for each lease that may be resumed, the
// session that it stands on. It keeps nothing of what stands on a lease: the ensemble lists what a session owns, and the caller says what
// it claims.
//
// Each lease is a file of its own, which is renamed into place before the caller hears of the lease, and deleted before its session is
// closed: a session whose closing was begun may be closed at any later time, by the process that has come back to it. So what is found may
// be used. What belongs to another boot of the machine, or to other directories of the ensemble, is not; it is deleted, and its sessions are
// left to expire. What reads or writes files takes as long as the disk does, and keeps nothing else waiting.
//
// A process holds a lock on the directory for as long as it lives, also while it is frozen, so that no two ever use one session.
package journal

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"hash/crc32"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"go.uber.org/zap"

	"github.com/sidekeeper/sidekeeper/recipes"
)

// A Record is one lease that may be resumed.
type Record struct {
	Identity string             `json:"identity"` // of its caller
	Owner    string             `json:"owner,omitempty"`
	Metadata map[string]string  `json:"metadata,omitempty"`
	Opened   time.Time          `json:"opened"`
	Shared   bool               `json:"shared,omitempty"` // whether others than the caller of its stream may have been told of its validity
	Session  recipes.SessionKey `json:"session"`
}

// A form is a Record as its file has it.
type form struct {
	Version int    `json:"version"`
	Boot    string `json:"boot"`  // of the machine
	Scope   string `json:"scope"` // see Open
	Key     string `json:"key"`
	Record
}

const (
	currentVersion = 1
	passwordBytes  = 16
	sumField       = `,"sum":"`
)

// A Journal is the directory of one sidecar. Its methods are for any goroutine.
type Journal struct {
	dir, boot, scope string
	log              *zap.Logger
	unusable         error    // why nothing can be noted. Then nothing is ever in the directory, or read from it
	lock             *os.File // nil if it is unusable, as sweep is
	began            time.Time
	sweep            *time.Timer

	mu      sync.Mutex
	earlier map[string]Record // of the process before, that nobody has come back to yet
}

// Open locks the directory, which is made if it is missing, and reads what the process before has left. Records of another scope are not
// used: it names what in the ensemble the leases are about. It fails if another process has the directory, if others may write in it, and
// if it holds what no sidecar has put there. Whose directory it is stands in it from then on: a mark. What others put there later is left.
//
// If the directory's file system is read-only, full or broken, the log says so, and the journal notes nothing: each Write fails.
func Open(dir, scope string, log *zap.Logger) (*Journal, error) {
	boot, err := bootID()
	if err != nil {
		return nil, err
	}
	j := &Journal{dir: dir, boot: boot, scope: scope, log: log, began: time.Now(), earlier: map[string]Record{}}
	if j.lock, err = occupy(dir); cannotWrite(err) {
		log.Error("the state directory cannot be written: no lease can be resumed", zap.String("dir", dir), zap.Error(err))
		j.unusable = err
		return j, nil
	}
	if err != nil {
		return nil, err
	}
	if err := j.load(); err != nil {
		return nil, errors.Join(err, j.lock.Close())
	}
	if !inMemory(dir) {
		log.Warn("the state directory is not in memory: what resumes the ensemble's sessions is written to a disk", zap.String("dir", dir))
	}
	j.sweep = time.AfterFunc(j.longest(), j.dropEarlier)
	return j, nil
}

// load reads all records, and deletes those that are of no use. What is not of this program's making it leaves.
func (j *Journal) load() error {
	entries, err := os.ReadDir(j.dir)
	if err != nil {
		return err
	}
	refused, first := 0, error(nil)
	users := map[int64]int{}
	for _, entry := range entries {
		if entry.Name() == lockName || entry.Name() == markName {
			continue
		}
		key, err := j.loadOne(entry.Name())
		switch {
		case err == nil:
			users[j.earlier[key].Session.ID]++
			continue
		case errors.Is(err, errForeign):
			j.log.Warn("the state directory holds a file that is no sidecar's; it is left", zap.String("file", entry.Name()), zap.Error(err))
			continue
		}
		if refused++; first == nil {
			first = fmt.Errorf("%s: %w", entry.Name(), err)
		}
		j.remove(entry.Name())
	}
	for key, record := range j.earlier {
		if users[record.Session.ID] > 1 {
			refused, first = refused+1, fmt.Errorf("%s: another lease has the same session", key)
			delete(j.earlier, key)
			j.remove(key + suffix)
		}
	}
	if refused > 0 {
		j.log.Warn("some leases cannot be resumed; what they own goes when their sessions expire",
			zap.Int("leases", refused), zap.NamedError("first", first))
	}
	if len(j.earlier) > 0 {
		j.log.Info("leases can be resumed", zap.Int("leases", len(j.earlier)))
	}
	return nil
}

// loadOne takes in one record, and returns its key.
func (j *Journal) loadOne(name string) (key string, _ error) {
	if !ofKey.MatchString(name) {
		return "", errForeign
	}
	data, err := readOwn(filepath.Join(j.dir, name))
	if err != nil {
		return "", err
	}
	key, finished := strings.CutSuffix(name, suffix)
	if !finished {
		return "", errors.New("unfinished")
	}
	record, err := j.read(data, key)
	if err == nil {
		j.earlier[key] = record
	}
	return key, err
}

func (j *Journal) read(data []byte, key string) (Record, error) {
	var found form
	if err := json.Unmarshal(data, &found); err != nil {
		return Record{}, err
	}
	switch {
	case !isWhole(data):
		return Record{}, errors.New("damaged: its checksum is another's")
	case found.Version != currentVersion:
		return Record{}, fmt.Errorf("version %d, where %d is understood", found.Version, currentVersion)
	case found.Boot != j.boot:
		return Record{}, errors.New("of another boot or another machine")
	case found.Scope != j.scope:
		return Record{}, fmt.Errorf("of %s", found.Scope)
	case found.Key != key, found.Session.ID == 0, len(found.Session.Password) != passwordBytes, found.Session.Timeout <= 0:
		return Record{}, errors.New("incomplete")
	}
	return found.Record, nil
}

// Write notes a lease under a key that only its caller's secret leads to: 1 to 64 digits or lower-case letters. With an error, what was noted
// under the key before stands.
func (j *Journal) Write(key string, record Record) error {
	if j.unusable != nil {
		return j.unusable
	}
	data, err := json.Marshal(form{Version: currentVersion, Boot: j.boot, Scope: j.scope, Key: key, Record: record})
	if err != nil {
		return err
	}
	written := filepath.Join(j.dir, key+unfinished)
	err = os.WriteFile(written, sealed(data), 0o600)
	if err == nil {
		err = os.Rename(written, filepath.Join(j.dir, key+suffix))
	}
	if err != nil {
		j.remove(key + unfinished)
	}
	return err
}

// sealed gives an object of JSON a last field, the CRC-32 of what stands before it: a disk that returns other bytes than were written is not
// believed.
func sealed(object []byte) []byte {
	before := object[:len(object)-1]
	return fmt.Appendf(slices.Clip(before), `%s%08x"}`, sumField, crc32.ChecksumIEEE(before))
}

// isWhole says whether an object is as it was when it was sealed.
func isWhole(object []byte) bool {
	end := bytes.LastIndex(object, []byte(sumField))
	return end > 0 && bytes.Equal(object, sealed(append(slices.Clip(object[:end]), '}')))
}

// Remove forgets a lease, before its session is closed, and says whether that was possible.
func (j *Journal) Remove(key string) bool { return j.remove(key + suffix) }

// remove deletes a file or, where that does not go, what it says.
func (j *Journal) remove(name string) bool {
	if j.unusable != nil {
		return true
	}
	file := filepath.Join(j.dir, name)
	err := os.Remove(file)
	if err == nil || errors.Is(err, fs.ErrNotExist) || empty(file) == nil {
		return true
	}
	j.log.Error("a lease that has ended may be resumed: its record cannot be deleted", zap.String("file", file), zap.Error(err))
	return false
}

// Claim hands out a lease of the process before, to its caller and once.
func (j *Journal) Claim(key, identity string) (Record, bool) {
	j.mu.Lock()
	defer j.mu.Unlock()
	found, ok := j.earlier[key]
	if !ok || found.Identity != identity || j.isLate(found) {
		return Record{}, false
	}
	delete(j.earlier, key)
	return found, true
}

// Awaits says whether a lease may be handed out still: that with this key, or with none, whichever is this caller's.
func (j *Journal) Awaits(key, identity string) bool {
	j.mu.Lock()
	defer j.mu.Unlock()
	for of, record := range j.earlier {
		if (key == "" || key == of) && record.Identity == identity && !j.isLate(record) {
			return true
		}
	}
	return false
}

// isLate says whether the session has expired if nobody has come back to it.
func (j *Journal) isLate(record Record) bool { return time.Since(j.began) > record.Session.Timeout }

// Return takes back what was claimed in vain.
func (j *Journal) Return(key string, record Record) {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.earlier[key] = record
}

// TellingsEnd is when the last validity is over that the process before can have told of a session with this timeout.
func (j *Journal) TellingsEnd(timeout time.Duration) time.Time { return j.began.Add(timeout) }

// longest is when all sessions of the process before have expired that nobody has come back to.
func (j *Journal) longest() (longest time.Duration) {
	for _, record := range j.earlier {
		longest = max(longest, record.Session.Timeout)
	}
	return longest + time.Second
}

// dropEarlier forgets what nobody has come back to in time.
func (j *Journal) dropEarlier() {
	j.mu.Lock()
	late := slices.Collect(maps.Keys(j.earlier))
	clear(j.earlier)
	j.mu.Unlock()
	for _, key := range late {
		j.Remove(key)
	}
}

// Close gives the directory up. What stands in it stays.
func (j *Journal) Close() error {
	if j.lock == nil {
		return nil
	}
	j.sweep.Stop()
	return j.lock.Close()
}
