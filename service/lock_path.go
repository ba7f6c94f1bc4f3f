package service

// LockPath is the node that a lock with this name lies in, for whoever looks after the ensemble itself.
func LockPath(root string, nested bool, lock string) (string, error) {
	parsed, err := parseName("name", lock)
	if err != nil {
		return "", err
	}
	return directory{root: root, nested: nested}.lock(parsed).Path, nil
}
