package zookeeper

import (
	"errors"
	"path"

	"github.com/sidekeeper/sidekeeper/recipes"
)

// admit refuses changes that would make more of a directory, or of what has a quota, than there may be.
func (r *reader) admit(a asker, changes ...recipes.Change) error {
	made := map[string]bool{}
	for _, change := range changes {
		if change.Kind != recipes.KindCreate {
			continue
		}
		if made[change.Path] = true; made[path.Dir(change.Path)] {
			continue // what a transaction makes, it does not fill
		}
		if err := r.admitChild(a, change.Path); err != nil {
			return err
		}
	}
	return r.admitQuota(a, changes...)
}

func (r *reader) admitQuota(a asker, changes ...recipes.Change) error {
	return r.client.quotas.Admit(a.ctx, tree{r, a.session}, changes...)
}

// concluded counts changes that were carried out, and says more of the quota that they would have exceeded.
func (r *reader) concluded(a asker, err error, changes ...recipes.Change) error {
	if errors.Is(err, recipes.ErrQuota) {
		return r.client.quotas.Explain(a.ctx, tree{r, a.session}, changes...)
	}
	if err != nil {
		return err
	}
	r.client.quotas.Note(changes...)
	for _, change := range changes {
		switch change.Kind {
		case recipes.KindCreate:
			r.counts.changed(change.Path, 1)
		case recipes.KindDelete:
			r.counts.changed(change.Path, -1)
		}
	}
	return nil
}
