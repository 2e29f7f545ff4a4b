-- admit: takes units of one share for a batch of requests.
--
-- KEYS     stock, buyer, order, journal of the share
-- ARGV[1]  epoch the callers believe in
-- ARGV[2]  1 to 128 requests of as many buyers, packed one behind the other:
--          id (16 bytes), quantity (2 bytes), limit (2 bytes), 1 to acknowledge the take or 0 (1 byte),
--          length of buyer (1 byte), buyer
-- RETURNS  integers:
--          {7}                             the share's keys are missing
--          {6, epoch, left, changes}       the share has another epoch or is sealed
--          {0, epoch, one row a request}   row: verdict, left, changes; of a known id also the epoch, change and
--                                          quantity of the take that is there
--          verdicts are those of sale.Verdict; 16 is added to a refusal of a doubtful id, 32 to a known id that is
--          decided, 64 to a known id that is undecided and acknowledged
-- CALLER   lane.flush
--
-- Running it twice takes nothing twice: the second time the ids are known. An undecided take that is known without the
-- acknowledged mark gets it when it is asked for.

local GONE, STALE, DONE = 7, 6, 0
local ADMITTED, KNOWN, EMPTY, AT_LIMIT, NEAR_LIMIT = 1, 2, 3, 4, 5
local DOUBTFUL, DECIDED, ACKNOWLEDGED = 16, 32, 64
local MAX_BATCH, HEAD = 128, 22
local byte, sub, match = string.byte, string.sub, string.match
local format = string.format -- writes whole numbers; .. and redis.call write them as floats, which takes much longer

local stock = redis.call('HMGET', KEYS[1], 'epoch', 'sealed', 'left', 'pending', 'changes')
if not stock[1] then
  return {GONE}
end
local left, pending, changes = tonumber(stock[3]), tonumber(stock[4]), tonumber(stock[5])
if stock[1] ~= ARGV[1] or stock[2] ~= '0' then
  return {STALE, tonumber(stock[1]), left, changes}
end

-- Tables below are made with room for a few rows, because growing them costs as much as the work on a small batch.
local batch = ARGV[2]
local ids, buyers, seen = {nil, nil, nil, nil}, {nil, nil, nil, nil}, {}
local n, at, size = 0, 1, #batch
while at <= size do
  local q1, q2, _, _, _, len = byte(batch, at + 16, at + 21)
  if n == MAX_BATCH or not len or len == 0 or q1 + q2 == 0 or at + HEAD + len - 1 > size then
    return redis.error_reply('ERR admit: malformed batch')
  end
  local buyer = sub(batch, at + HEAD, at + HEAD + len - 1)
  if seen[buyer] then -- the counts below are read once, for all rows
    return redis.error_reply('ERR admit: a buyer twice in one batch')
  end
  n = n + 1
  ids[n], buyers[n], seen[buyer] = sub(batch, at, at + 15), buyer, true
  at = at + HEAD + len
end
if n == 0 then
  return redis.error_reply('ERR admit: malformed batch')
end

local entries = redis.call('HMGET', KEYS[3], unpack(ids, 1, n))
local counts = redis.call('HMGET', KEYS[2], unpack(buyers, 1, n))
local out, o = {DONE, tonumber(ARGV[1]), nil, nil, nil, nil, nil, nil}, 2
local orders, journal, fields, w = {nil, nil, nil, nil}, {nil, nil, nil, nil}, {nil, nil, nil, nil}, 0
local now, marked
at = 1

for i = 1, n do
  local q1, q2, l1, l2, mark, len = byte(batch, at + 16, at + 21)
  local quantity, limit = q1 * 256 + q2, l1 * 256 + l2
  local entry = entries[i]
  local state = entry and byte(entry)
  at = at + HEAD + len
  if state and state ~= 100 then -- 100 is 'd', doubtful; 112 is 'p', undecided; 97 is 'a', undecided and acknowledged
    local verdict = KNOWN
    if state == 112 and mark == 1 then
      marked = marked or {}
      local m = #marked
      marked[m + 1], marked[m + 2] = ids[i], 'a' .. sub(entry, 2)
      state = 97
    end
    if state == 97 then
      verdict = KNOWN + ACKNOWLEDGED
    elseif state ~= 112 then
      verdict = KNOWN + DECIDED
    end
    local q, e, c = match(entry, '^.(%d+) (%d+)%.(%d+) ')
    out[o + 1], out[o + 2], out[o + 3] = verdict, left, changes
    out[o + 4], out[o + 5], out[o + 6] = tonumber(e), tonumber(c), tonumber(q)
    o = o + 6
  else
    local units, undecided = 0, 0
    if counts[i] then
      units, undecided = match(counts[i], '^(%d+):(%d+)$')
      units, undecided = tonumber(units), tonumber(undecided)
    end
    local verdict = ADMITTED
    if units + quantity > limit then
      verdict = units - undecided + quantity > limit and AT_LIMIT or NEAR_LIMIT
    elseif left < quantity then
      verdict = EMPTY
    end
    if verdict ~= ADMITTED then
      verdict = state and verdict + DOUBTFUL or verdict
    else
      if not now then
        local time = redis.call('TIME')
        now = format('%s%03d', time[1], math.floor(time[2] / 1000))
      end
      local id, buyer = ids[i], buyers[i]
      left, pending, changes = left - quantity, pending + quantity, changes + 1
      orders[w + 1] = id
      orders[w + 2] = format(mark == 1 and 'a%d %s.%d ' or 'p%d %s.%d ', quantity, ARGV[1], changes) .. buyer
      journal[w + 1], journal[w + 2] = now, id
      fields[w + 1], fields[w + 2] = buyer, format('%d:%d', units + quantity, undecided + quantity)
      w = w + 2
    end
    out[o + 1], out[o + 2], out[o + 3] = verdict, left, changes
    o = o + 3
  end
end

if w > 0 then
  -- The journal goes first: it is the one key that was not read above, so a wrong type fails before anything changed.
  redis.call('ZADD', KEYS[4], unpack(journal, 1, w))
  redis.call('HSET', KEYS[3], unpack(orders, 1, w))
  redis.call('HSET', KEYS[2], unpack(fields, 1, w))
  redis.call('HSET', KEYS[1], 'left', format('%d', left), 'pending', format('%d', pending),
    'changes', format('%d', changes))
end
if marked then
  redis.call('HSET', KEYS[3], unpack(marked))
end
return out
