// SPDX-License-Identifier: GPL-2.0
/*
 * The log ("truth"): exact times of arrivals, departures and changes of the TX ring. Tests compare
 * with them what the code under test has measured.
 *
 * Its files are in /sys/kernel/debug/hwnic/DEVICE/. DEVICE is the name of the parent device, which
 * does not change when the net device is renamed or moved (see hwnic/truth_dir in sysfs).
 *
 *	truth_enable	number of records to keep; 0: none. Writing empties the log
 *	truth_types	types of records to keep: some of the letters RTQ
 *	truth		the records, as text; reading removes them
 *	truth_lost	number of records that later ones have overwritten
 *
 * README.md describes the records.
 */

#include <linux/debugfs.h>
#include <linux/if_vlan.h>
#include <linux/ip.h>
#include <linux/ipv6.h>
#include <linux/minmax.h>
#include <linux/mutex.h>
#include <linux/platform_device.h>
#include <linux/slab.h>
#include <linux/tcp.h>
#include <linux/uaccess.h>
#include <linux/vmalloc.h>
#include <net/ip.h>

#include "hwnic.h"

/* Bytes that are formatted at once, longest line, and records that fit. */
#define TRUTH_TEXT_BYTES	32768
#define TRUTH_LINE_BYTES	128
#define TRUTH_CHUNK		(TRUTH_TEXT_BYTES / TRUTH_LINE_BYTES)

static const char truth_letters[] = "RTQ";
static struct dentry *truth_root;

/* An open file. Of @text, @len bytes are formatted, and @taken of these have been read. */
struct truth_reader {
	struct hwnic *end;
	size_t len;
	size_t taken;
	struct hwnic_record records[TRUTH_CHUNK];
	char text[TRUTH_TEXT_BYTES];
};

/* ---- adding records ---- */

/* Returns the record to write next; overwrites the oldest record if the ring is full. */
static struct hwnic_record *truth_next(struct hwnic_truth *truth)
{
	u32 at;

	if (truth->count == truth->size) {
		truth->first = truth->first + 1 == truth->size ? 0 : truth->first + 1;
		truth->count--;
		truth->lost++;
	}
	at = truth->first + truth->count++;
	return &truth->ring[at < truth->size ? at : at - truth->size];
}

/* Returns the offset of a packet's TCP header, 0 if it has none, and sets *end to the offset of the
 * packet's end. Parses from the Ethernet header on, as header offsets of the skb may not be set.
 */
static u32 truth_find_tcp(const struct sk_buff *skb, u32 *end)
{
	u32 offset = offsetof(struct ethhdr, h_proto);
	const struct ipv6hdr *ip6;
	const struct iphdr *ip;
	union {
		struct ipv6hdr ip6;
		struct iphdr ip;
		__be16 proto;
	} buffer;
	const __be16 *proto;

	do {
		proto = skb_header_pointer(skb, offset, sizeof(*proto), &buffer.proto);
		offset += proto && eth_type_vlan(*proto) ? VLAN_HLEN : 0;
	} while (proto && eth_type_vlan(*proto) && offset < 32);
	offset += sizeof(*proto);
	*end = skb->len;
	if (proto && *proto == htons(ETH_P_IP)) {
		ip = skb_header_pointer(skb, offset, sizeof(*ip), &buffer.ip);
		if (!ip || ip->protocol != IPPROTO_TCP || ip->ihl < 5 ||
		    ip->frag_off & htons(IP_OFFSET))
			return 0;
		/* tot_len is 0 if the packet is too long for 16 bits. */
		if (ip->tot_len && !skb_is_gso(skb))
			*end = min_t(u32, *end, offset + ntohs(ip->tot_len));
		return offset + ip->ihl * 4;
	}
	if (proto && *proto == htons(ETH_P_IPV6)) {
		ip6 = skb_header_pointer(skb, offset, sizeof(*ip6), &buffer.ip6);
		if (!ip6 || ip6->nexthdr != IPPROTO_TCP)
			return 0;
		offset += sizeof(*ip6);
		if (ip6->payload_len && !skb_is_gso(skb))
			*end = min_t(u32, *end, offset + ntohs(ip6->payload_len));
		return offset;
	}
	return 0;
}

/**
 * hwnic_truth_tcp() - log a frame of TCP; other frames are ignored
 * @end: the end, locked
 * @type: HWNIC_TRUTH_R or HWNIC_TRUTH_T
 * @skb: the packet, starting with its Ethernet header
 * @mono_ns: time of the event, CLOCK_MONOTONIC
 * @index: number of the frame in the GSO packet, from 0
 */
void hwnic_truth_tcp(struct hwnic *end, enum hwnic_truth_type type, struct sk_buff *skb,
		     u64 mono_ns, u32 index)
{
	u32 stop, offset = truth_find_tcp(skb, &stop), skip = 0, payload;
	struct hwnic_record *record;
	const struct tcphdr *tcp;
	struct tcphdr buffer;
	bool fin;

	tcp = offset ? skb_header_pointer(skb, offset, sizeof(buffer), &buffer) : NULL;
	if (!tcp || offset + tcp->doff * 4 > stop)
		return;
	payload = stop - offset - tcp->doff * 4;
	fin = tcp->fin;
	if (skb_is_gso(skb)) {
		skip = min(index * skb_shinfo(skb)->gso_size, payload);
		/* Only the last frame has the FIN. */
		fin = fin && payload - skip <= skb_shinfo(skb)->gso_size;
		payload = min_t(u32, payload - skip, skb_shinfo(skb)->gso_size);
	}

	record = truth_next(&end->truth);
	record->type = type;
	record->mono_ns = mono_ns;
	record->value = hwnic_phc_ns(&end->phc, mono_ns);
	record->sport = ntohs(tcp->source);
	record->dport = ntohs(tcp->dest);
	record->seq_end = ntohl(tcp->seq) + skip + payload + tcp->syn + fin;
	record->ack_seq = ntohl(tcp->ack_seq);
	record->len = payload;
}

/**
 * hwnic_truth_queue() - log how many bytes are in the TX ring
 * @end: the end, locked
 * @mono_ns: time of the change, CLOCK_MONOTONIC
 */
void hwnic_truth_queue(struct hwnic *end, u64 mono_ns)
{
	struct hwnic_record *record = truth_next(&end->truth);

	record->type = HWNIC_TRUTH_Q;
	record->mono_ns = mono_ns;
	record->value = end->tx_bytes;
}

/* ---- reading ---- */

static int truth_print(char *text, size_t size, const struct hwnic_record *record)
{
	if (record->type == HWNIC_TRUTH_Q)
		return scnprintf(text, size, "Q %llu %llu\n", record->mono_ns, record->value);
	return scnprintf(text, size, "%c %llu %llu %u %u %u %u %u\n",
			 truth_letters[record->type], record->mono_ns, record->value,
			 record->sport, record->dport, record->seq_end, record->ack_seq,
			 record->len);
}

/* Takes the oldest records, at most TRUTH_CHUNK. Returns their number. */
static u32 truth_consume(struct hwnic *end, struct hwnic_record *records)
{
	struct hwnic_truth *truth = &end->truth;
	u32 count;

	spin_lock_bh(&end->lock);
	hwnic_catch_up(end);
	for (count = 0; count < TRUTH_CHUNK && truth->count; count++) {
		records[count] = truth->ring[truth->first];
		truth->first = truth->first + 1 == truth->size ? 0 : truth->first + 1;
		truth->count--;
	}
	spin_unlock_bh(&end->lock);
	return count;
}

/* Formats the next records. Returns false if there are none. */
static bool truth_fill(struct truth_reader *reader)
{
	u32 count = truth_consume(reader->end, reader->records), i;

	reader->taken = 0;
	reader->len = 0;
	for (i = 0; i < count; i++)
		reader->len += truth_print(reader->text + reader->len,
					   sizeof(reader->text) - reader->len,
					   &reader->records[i]);
	return reader->len;
}

static ssize_t truth_read(struct file *file, char __user *buffer, size_t size, loff_t *pos)
{
	struct truth_reader *reader = file->private_data;
	ssize_t copied = 0;

	mutex_lock(&reader->end->truth_lock);
	while (copied < size && (reader->taken < reader->len || truth_fill(reader))) {
		size_t part = min(size - copied, reader->len - reader->taken);

		if (copy_to_user(buffer + copied, reader->text + reader->taken, part)) {
			copied = copied ?: -EFAULT;
			break;
		}
		copied += part;
		reader->taken += part;
		cond_resched();
	}
	mutex_unlock(&reader->end->truth_lock);
	return copied;
}

static int truth_open(struct inode *inode, struct file *file)
{
	struct truth_reader *reader = kvzalloc(sizeof(*reader), GFP_KERNEL);

	if (!reader)
		return -ENOMEM;
	reader->end = inode->i_private;
	file->private_data = reader;
	return 0;
}

static int truth_release(struct inode *inode, struct file *file)
{
	kvfree(file->private_data);
	return 0;
}

static const struct file_operations truth_fops = {
	.owner = THIS_MODULE,
	.open = truth_open,
	.read = truth_read,
	.release = truth_release,
};

/* ---- settings ---- */

/* Sets the number of records to keep, and empties the log. */
static int truth_enable_set(void *data, u64 size)
{
	struct hwnic_record *ring = NULL, *old;
	struct hwnic *end = data;

	if (size > HWNIC_TRUTH_MAX)
		return -ERANGE;
	if (size) {
		ring = vmalloc(array_size(size, sizeof(*ring)));
		if (!ring)
			return -ENOMEM;
	}
	mutex_lock(&end->truth_lock);
	spin_lock_bh(&end->lock);
	/* Events up to now belong to the old log. */
	hwnic_catch_up(end);
	old = end->truth.ring;
	end->truth.ring = ring;
	end->truth.size = size;
	end->truth.first = 0;
	end->truth.count = 0;
	end->truth.lost = 0;
	spin_unlock_bh(&end->lock);
	mutex_unlock(&end->truth_lock);
	vfree(old);
	return 0;
}

static int truth_enable_get(void *data, u64 *size)
{
	struct hwnic *end = data;

	*size = end->truth.size;
	return 0;
}
DEFINE_DEBUGFS_ATTRIBUTE(truth_enable_fops, truth_enable_get, truth_enable_set, "%llu\n");

static ssize_t truth_types_read(struct file *file, char __user *buffer, size_t size,
				loff_t *pos)
{
	struct hwnic *end = file->private_data;
	char text[sizeof(truth_letters) + 1];
	size_t len = 0, i;

	for (i = 0; truth_letters[i]; i++)
		if (end->truth.types & BIT(i))
			text[len++] = truth_letters[i];
	text[len++] = '\n';
	return simple_read_from_buffer(buffer, size, pos, text, len);
}

static ssize_t truth_types_write(struct file *file, const char __user *buffer, size_t size,
				 loff_t *pos)
{
	struct hwnic *end = file->private_data;
	char text[16], *letter, *end_of_text;
	const char *known;
	u32 types = 0;

	if (!size || size >= sizeof(text))
		return -EINVAL;
	if (copy_from_user(text, buffer, size))
		return -EFAULT;
	text[size] = '\0';
	end_of_text = strim(text);
	for (letter = end_of_text; *letter; letter++) {
		known = strchr(truth_letters, *letter);
		if (!known)
			return -EINVAL;
		types |= BIT(known - truth_letters);
	}
	spin_lock_bh(&end->lock);
	hwnic_catch_up(end);
	end->truth.types = types;
	spin_unlock_bh(&end->lock);
	return size;
}

static const struct file_operations truth_types_fops = {
	.owner = THIS_MODULE,
	.open = simple_open,
	.read = truth_types_read,
	.write = truth_types_write,
};

/* ---- creation and deletion ---- */

void hwnic_truth_create(struct hwnic *end)
{
	struct dentry *dir = debugfs_create_dir(dev_name(&end->parent->dev), truth_root);

	debugfs_create_file_unsafe("truth_enable", 0600, dir, end, &truth_enable_fops);
	debugfs_create_file("truth_types", 0600, dir, end, &truth_types_fops);
	debugfs_create_file("truth", 0400, dir, end, &truth_fops);
	debugfs_create_u64("truth_lost", 0400, dir, &end->truth.lost);
	end->truth_dir = dir;
}

void hwnic_truth_remove(struct hwnic *end)
{
	debugfs_remove_recursive(end->truth_dir);
	vfree(end->truth.ring);
}

void hwnic_truth_init(void)
{
	truth_root = debugfs_create_dir(KBUILD_MODNAME, NULL);
}

void hwnic_truth_exit(void)
{
	debugfs_remove_recursive(truth_root);
}
