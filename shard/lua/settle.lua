-- settle: tells a share how takes ended. Every take is told by its own token, so it may come late, twice, or to a share
-- that was laid out anew: what does not fit changes no take. An id that the journal holds without an undecided take
-- leaves the journal.
--
-- KEYS     stock, buyer, order, journal of the share
-- ARGV[1]  1 to 128 settlements, packed one behind the other:
--          id (16 bytes), 1 for kept, 0 for dropped or 2 for dropped unless it carries the acknowledged mark (1 byte),
--          length of token (1 byte), token
-- RETURNS  integers: {7} keys missing · {6} sealed: the reshare tells these takes itself · {0, number of changes made}
-- CALLER   lane.flush

local GONE, SEALED, DONE = 7, 6, 0
local KEPT, DROPPED_UNMARKED = 1, 2
local MAX_BATCH, HEAD = 128, 18

if not epoch then
  return {GONE}
end
if sealed then
  return {SEALED}
end

local batch = ARGV[1]
local ids, kept, spare, tokens, n, at, size = {}, {}, {}, {}, 0, 1, #batch
while at <= size do
  local ending, len = byte(batch, at + 16, at + 17)
  if n == MAX_BATCH or not len or len == 0 or at + HEAD + len - 1 > size then
    return redis.error_reply('ERR settle: malformed batch')
  end
  n = n + 1
  ids[n] = sub(batch, at, at + 15)
  kept[n], spare[n] = ending == KEPT, ending == DROPPED_UNMARKED
  tokens[n] = sub(batch, at + HEAD, at + HEAD + len - 1)
  at = at + HEAD + len
end
if n == 0 then
  return redis.error_reply('ERR settle: malformed batch')
end

load(ids)
local made = 0
for i = 1, n do
  local id, entry = ids[i], entries[ids[i]]
  if is_undecided(entry) then
    if entry.token == tokens[i] and not (spare[i] and entry.state == 'a') then
      if not kept[i] then
        give_back(entry)
      end
      become(id, entry, kept[i] and 'k' or 'd')
      made = made + 1
    end
  elseif entry and entry.state == 'd' and kept[i] and entry.token == tokens[i] then
    take_again(entry)
    become(id, entry, 'k')
    forget(id)
    made = made + 1
  else
    forget(id) -- nothing undecided has this id: whoever found it in the journal must not find it for ever
  end
end
save()
return {DONE, made}
