-- seal: gives a share a reshare's epoch and stops admissions there, and returns the oldest undecided takes. A share
-- that is missing becomes sealed and blank; it counts as gone until it is opened, also when the reply was lost, or when
-- the reshare died between wiping and opening it.
--
-- KEYS     stock, buyer, order, journal of the share
-- ARGV     epoch of the reshare, undecided takes to return at most (1 to 1000)
-- RETURNS  strings: '6' when another reshare's epoch is there, or this one has opened the share already; else
--          '0', 1 when gone, epoch before, 1 when the journal holds more, then per take: id, age in ms, entry
-- CALLER   Gate.Seal

local CONFLICT, SEALED = '6', '0'
local MAX_PAGE = 1000
local epoch, limit = tonumber(ARGV[1]), tonumber(ARGV[2])
if not epoch or epoch < 1 or not limit or limit < 1 or limit > MAX_PAGE then
  return redis.error_reply('ERR seal: malformed')
end

local stock = redis.call('HMGET', KEYS[1], 'epoch', 'sealed', 'blank', 'before')
local has = tonumber(stock[1] or 0)
if has > epoch or (has == epoch and stock[2] ~= '1') then
  return {CONFLICT}
end
local page = redis.call('ZRANGE', KEYS[4], 0, limit - 1, 'WITHSCORES')
local size = redis.call('ZCARD', KEYS[4])
local gone, before = stock[3] == '1' or not stock[1], stock[4] or '0'
local ids = {}
for i = 1, #page, 2 do
  ids[#ids + 1] = page[i]
end
local values = #ids > 0 and redis.call('HMGET', KEYS[3], unpack(ids)) or {}

if not stock[1] then
  redis.call('HSET', KEYS[1], 'epoch', ARGV[1], 'sealed', 1, 'left', 0, 'pending', 0, 'initial', 0, 'changes', 0,
    'blank', 1, 'before', 0)
elseif has < epoch then
  before = stock[1]
  redis.call('HSET', KEYS[1], 'epoch', ARGV[1], 'sealed', 1, 'before', before)
end

local time = redis.call('TIME')
local now = time[1] * 1000 + math.floor(time[2] / 1000)
local out = {SEALED, gone and '1' or '0', gone and '0' or before, size > limit and '1' or '0'}
for i, id in ipairs(ids) do
  out[#out + 1] = id
  out[#out + 1] = string.format('%.0f', now - tonumber(page[2 * i]))
  out[#out + 1] = values[i] or ''
end
return out
