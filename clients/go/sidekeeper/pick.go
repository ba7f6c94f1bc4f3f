package sidekeeper

import (
	"bytes"
	"crypto/sha256"
)

// Pick says which member a key belongs to, by rendezvous hashing (Thaler and Ravishankar, 1998): all who see the same members pick
// the same one, in every language, and when a member comes or goes, only keys of its own change hands. It is the member for whom
// SHA-256 of its name, a zero byte and the key is largest, read as a number; nil if there is no member.
func Pick(view *GroupView, key string) *GroupMember {
	var best *GroupMember
	var highest []byte
	for _, member := range view.Members {
		weight := sha256.Sum256([]byte(member.Member + "\x00" + key))
		if bytes.Compare(weight[:], highest) > 0 {
			best, highest = member, weight[:]
		}
	}
	return best
}
