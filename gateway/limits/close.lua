#!lua flags=allow-oom
-- What a hold took, given back: shared by settle and sweep, so that both move the same counters.
-- A hold counts in a hash only when both were written under the same nonce; older ones move nothing. One with a month is of a
-- pack: what it took from there goes back there.
local function close(hold, verdict, account_key, key_key, free_hangups)
  local day, fare, nonce, month = hold[3], hold[4], hold[9], hold[10]
  local u, g = 'u' .. day, 'g' .. day
  local account = redis.call('HMGET', account_key, 'n', 'open', u, g)
  local counted = account[1] == nonce
  local changes = {}
  if verdict == 'hangup' then
    verdict = 'voided'
    if counted and account[3] then
      local hangups = tonumber(account[4] or 0) + 1
      changes = {g, hangups}
      if free_hangups >= 0 and hangups > free_hangups then verdict = 'posted' end
    end
  end
  return verdict, function()
    if counted then
      redis.call('HSET', account_key, 'open', math.max(0, tonumber(account[2] or 0) - 1), unpack(changes))
    end
    if verdict == 'posted' then return end
    if counted and month then
      for _, field in ipairs({'b', 'c' .. month}) do
        local count = redis.call('HGET', account_key, field)
        if count then redis.call('HSET', account_key, field, math.max(0, tonumber(count) - fare)) end
      end
    elseif counted and account[3] then
      redis.call('HSET', account_key, u, math.max(0, tonumber(account[3]) - fare))
    end
    local key = redis.call('HMGET', key_key, 'n', u)
    if key[1] == nonce and key[2] then redis.call('HSET', key_key, u, math.max(0, tonumber(key[2]) - fare)) end
  end
end
