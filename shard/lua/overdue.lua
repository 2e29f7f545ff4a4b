-- overdue: lists takes that are undecided for longer than an age by the clock of Redis, oldest first. Changes nothing.
--
-- KEYS     order, journal of the share
-- ARGV     age in ms, takes to return at most (1 to 1000)
-- RETURNS  strings, per take: id, age in ms, entry
-- CALLER   Gate.Overdue

local age, limit = tonumber(ARGV[1]), tonumber(ARGV[2])
if not age or age < 0 or not limit or limit < 1 or limit > 1000 then
  return redis.error_reply('ERR overdue: malformed')
end
local time = redis.call('TIME')
local now = time[1] * 1000 + math.floor(time[2] / 1000)
local page = redis.call('ZRANGEBYSCORE', KEYS[2], '-inf', string.format('%.0f', now - age), 'WITHSCORES',
  'LIMIT', 0, limit)
local ids = {}
for i = 1, #page, 2 do
  ids[#ids + 1] = page[i]
end
local out = {}
if #ids > 0 then
  local values = redis.call('HMGET', KEYS[1], unpack(ids))
  for i, id in ipairs(ids) do
    out[#out + 1] = id
    out[#out + 1] = string.format('%.0f', now - tonumber(page[2 * i]))
    out[#out + 1] = values[i] or ''
  end
end
return out
