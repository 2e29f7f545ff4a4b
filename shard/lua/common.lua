-- Common to settle, tell and credit, and put before each of them: what is known of a share is read in a few commands,
-- changed in local variables, and written once at the end by save.
--
-- KEYS     stock, buyer, order, journal of the share

local byte, sub, match = string.byte, string.sub, string.match
local format = string.format -- writes whole numbers; .. and redis.call write them as floats, which takes much longer

local stock = redis.call('HMGET', KEYS[1], 'epoch', 'sealed', 'left', 'pending', 'changes', 'short')
local epoch, sealed = stock[1], stock[2] == '1'
local left, pending, changes = tonumber(stock[3]), tonumber(stock[4]), tonumber(stock[5])
local short = tonumber(stock[6] or 0) -- units that are owed: see take_again

local entries = {} -- order id → {state, quantity, token, buyer}, of the ids that load found
local counts = {}  -- buyer → {units, undecided}, of the buyers of those entries
local dirty_ids, dirty_buyers, decided = {}, {}, {}

-- load reads the entries of these ids and the counts of their buyers.
local function load(ids)
  local values = redis.call('HMGET', KEYS[3], unpack(ids))
  local buyers = {}
  for i, value in ipairs(values) do
    if value then
      local state, quantity, token, buyer = match(value, '^(%a)(%d+) (%d+%.%d+) (.*)$')
      entries[ids[i]] = {state = state, quantity = tonumber(quantity), token = token, buyer = buyer}
      if not counts[buyer] then
        counts[buyer] = {units = 0, undecided = 0}
        buyers[#buyers + 1] = buyer
      end
    end
  end
  if #buyers == 0 then
    return
  end
  for i, value in ipairs(redis.call('HMGET', KEYS[2], unpack(buyers))) do
    if value then
      local units, undecided = match(value, '^(%d+):(%d+)$')
      counts[buyers[i]] = {units = tonumber(units), undecided = tonumber(undecided)}
    end
  end
end

-- is_undecided tells of an entry, or of none, whether its take awaits its end; 'a' are the acknowledged ones.
local function is_undecided(entry)
  return entry and (entry.state == 'p' or entry.state == 'a')
end

-- become gives an entry its new state.
local function become(id, entry, state)
  if is_undecided(entry) then
    decided[#decided + 1] = id
    pending = pending - entry.quantity
    counts[entry.buyer].undecided = math.max(0, counts[entry.buyer].undecided - entry.quantity)
    dirty_buyers[entry.buyer] = true
  end
  entry.state = state
  dirty_ids[id] = true
end

-- forget takes a stray out of the journal: an id that is there without an undecided entry.
local function forget(id)
  decided[#decided + 1] = id
end

-- add puts units back. What is owed is paid first.
local function add(quantity)
  local paid = math.min(short, quantity)
  short, left, changes = short - paid, left + quantity - paid, changes + 1
end

-- give_back returns an entry's units. The buyer's field stays at 0: who ever held units here must stay findable.
local function give_back(entry)
  add(entry.quantity)
  counts[entry.buyer].units = math.max(0, counts[entry.buyer].units - entry.quantity)
  dirty_buyers[entry.buyer] = true
end

-- take_again takes units that were given back too early. Others may have some of them by now: left never falls below 0,
-- and what is missing is owed.
local function take_again(entry)
  local there = math.min(left, entry.quantity)
  short, left, changes = short + entry.quantity - there, left - there, changes + 1
  counts[entry.buyer].units = counts[entry.buyer].units + entry.quantity
  dirty_buyers[entry.buyer] = true
end

-- save writes what changed.
local function save()
  if #decided > 0 then
    redis.call('ZREM', KEYS[4], unpack(decided)) -- first, because the journal's type was not checked by a read
  end
  local orders, rows = {}, {}
  for id in pairs(dirty_ids) do
    local e = entries[id]
    orders[#orders + 1] = id
    orders[#orders + 1] = format('%s%d %s ', e.state, e.quantity, e.token) .. e.buyer
  end
  if #orders == 0 then
    return
  end
  for buyer in pairs(dirty_buyers) do
    rows[#rows + 1] = buyer
    rows[#rows + 1] = format('%d:%d', counts[buyer].units, counts[buyer].undecided)
  end
  redis.call('HSET', KEYS[3], unpack(orders))
  if #rows > 0 then
    redis.call('HSET', KEYS[2], unpack(rows))
  end
  redis.call('HSET', KEYS[1], 'left', format('%d', left), 'pending', format('%d', pending),
    'changes', format('%d', changes))
  if short > 0 or stock[6] then
    redis.call('HSET', KEYS[1], 'short', format('%d', short))
  end
end
