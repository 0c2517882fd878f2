-- The request leaves: its slot or its place goes to whoever waits.
local call = not slot and waiter_of(request)
if slot then
  free(request, slot, worked >= 0 and worked or nil)
elseif call then
  leave_line(request, call)
  if not unsure then redis.call('DEL', KEYS[#KEYS]) end
end
serve()
return (slot or call) and 1 or 0
