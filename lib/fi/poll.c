/* SPDX-License-Identifier: BSD-3-Clause */
/* poll.c - poll sets: which of several completion queues and counters have events. */
#include <fi/state.h>

#include <stdlib.h>

struct member {
	struct link link;
	struct fid *fid;
	uint64_t polled; /* of a counter: its `ends` when it was told last */
};

struct poll {
	struct fid_poll fid;
	struct domain *domain;
	struct link members;
};

static struct notice *member_notice(struct fid *fid)
{
	return fid->fclass == FI_CLASS_CQ ? &object_of(fid, struct cq)->notice
					  : &object_of(fid, struct counter)->notice;
}

static uint32_t *member_uses(struct fid *fid)
{
	return fid->fclass == FI_CLASS_CQ ? &object_of(fid, struct cq)->uses
					  : &object_of(fid, struct counter)->uses;
}

static bool member_has_events(struct member *member)
{
	const struct counter *counter;
	bool changed;

	if (member->fid->fclass == FI_CLASS_CQ)
		return !cq_is_empty(object_of(member->fid, struct cq));
	counter = object_of(member->fid, struct counter);
	changed = counter->ends != member->polled && counter->ends != counter->polled;
	member->polled = counter->ends;
	return changed;
}

static int poll_run(struct fid_poll *fid, void **contexts, int count)
{
	struct poll *poll = object_of(fid, struct poll);
	int found = 0;

	domain_enter(poll->domain);
	list_each (struct member, member, &poll->members, link)
		notice_drive(member_notice(member->fid));
	list_each (struct member, member, &poll->members, link)
		if (found < count && member_has_events(member))
			contexts[found++] = member->fid->context;
	domain_leave(poll->domain);
	return found;
}

static struct member *member_find(const struct poll *poll, const struct fid *fid)
{
	list_each (struct member, member, &poll->members, link)
		if (member->fid == fid)
			return member;
	return NULL;
}

static int poll_add(struct fid_poll *fid, struct fid *event, uint64_t flags)
{
	struct poll *poll = object_of(fid, struct poll);
	struct member *member;
	int result = 0;

	if (flags != 0 || (event->fclass != FI_CLASS_CQ && event->fclass != FI_CLASS_CNTR))
		return -FI_EINVAL;
	if (member_notice(event)->domain != poll->domain)
		return -FI_EDOMAIN;
	member = malloc(sizeof(*member));
	if (!member)
		return -FI_ENOMEM;
	*member = (struct member){.fid = event};
	domain_enter(poll->domain);
	if (member_find(poll, event)) {
		free(member);
		result = -FI_EALREADY;
	} else {
		list_append(&poll->members, &member->link);
		++*member_uses(event);
	}
	domain_leave(poll->domain);
	return result;
}

static int poll_del(struct fid_poll *fid, struct fid *event, uint64_t flags)
{
	struct poll *poll = object_of(fid, struct poll);
	struct member *member;

	if (flags != 0)
		return -FI_EINVAL;
	domain_enter(poll->domain);
	member = member_find(poll, event);
	if (member) {
		link_remove(&member->link);
		--*member_uses(event);
		free(member);
	}
	domain_leave(poll->domain);
	return member ? 0 : -FI_EINVAL;
}

static int poll_close(struct fid *fid)
{
	struct poll *poll = object_of(fid, struct poll);

	if (!list_empty(&poll->members))
		return -FI_EBUSY;
	domain_enter(poll->domain);
	poll->domain->uses--;
	domain_leave(poll->domain);
	free(poll);
	return 0;
}

static struct fi_ops poll_fid_ops = FID_OPS(poll_close, none_bind, none_control);
static struct fi_ops_poll poll_ops = {
	.size = sizeof(poll_ops),
	.poll = poll_run,
	.poll_add = poll_add,
	.poll_del = poll_del,
};

int poll_open(struct fid_domain *fid, struct fi_poll_attr *attr, struct fid_poll **opened)
{
	struct domain *domain = object_of(fid, struct domain);
	struct poll *poll;

	if (attr && attr->flags != 0)
		return -FI_EINVAL;
	poll = calloc(1, sizeof(*poll));
	if (!poll)
		return -FI_ENOMEM;
	poll->fid.fid = (struct fid){FI_CLASS_POLL, NULL, &poll_fid_ops};
	poll->fid.ops = &poll_ops;
	poll->domain = domain;
	list_init(&poll->members);
	domain_enter(domain);
	domain->uses++;
	domain_leave(domain);
	*opened = &poll->fid;
	return 0;
}
